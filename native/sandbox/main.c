/* The sandbox's program. `keep` beside the owner, speaking on descriptor 3; `root` inside of the sandbox. */
#include <string.h>
#include <unistd.h>

#include "program.h"

/* Where the sandbox sees what belongs to us. */
static const char inside[] = "/run/agentrewind";

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "keep") == 0) keep(3);
  if (count == 2 && strcmp(arguments[1], "root") == 0) run_root(inside);
  static const char usage[] = "agentrewind-sandbox is started by agentrewind.\n";
  write(2, usage, sizeof usage - 1);
  return 2;
}
