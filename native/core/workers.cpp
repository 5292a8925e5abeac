#include "workers.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace agentrewind {
namespace {

struct Crew {
  size_t count;
  const std::function<void(size_t, unsigned)>& work;
  std::atomic<size_t> next{0};

  void run(unsigned worker) {
    for (size_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) work(index, worker);
  }
};

struct Member {
  Crew* crew;
  unsigned worker;
};

void* start(void* argument) {
  const Member& member = *static_cast<Member*>(argument);
  member.crew->run(member.worker);
  return nullptr;
}

}  // namespace

unsigned workerCount() { return std::clamp(std::thread::hardware_concurrency(), 1u, 8u); }

void parallelFor(size_t count, unsigned workers, const std::function<void(size_t, unsigned)>& work) {
  Crew crew{count, work};
  const unsigned wanted = static_cast<unsigned>(std::min<size_t>(workers, count));
  std::vector<Member> members;
  for (unsigned worker = 1; worker < wanted; worker++) members.push_back({&crew, worker});
  std::vector<pthread_t> threads;
  for (Member& member : members) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, start, &member) != 0) break;
    threads.push_back(thread);
  }
  crew.run(0);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

}  // namespace agentrewind
