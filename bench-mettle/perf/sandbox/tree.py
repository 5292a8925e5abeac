# A root with N children that hold MB megabytes together; at SIGUSR1 every child changes 64 pages of its own.
import os, signal, sys

count, megabytes, ready = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
children = []
for _ in range(count):
    child = os.fork()
    if child == 0:
        data = bytearray(os.urandom(max(1, (megabytes << 20) // count)))
        turn = 0

        def change(*_):
            global turn
            turn += 1
            for page in range(64):
                data[(page * 4096 + turn) % len(data)] = turn & 255

        signal.signal(signal.SIGUSR1, change)
        open(f"{ready}.{os.getpid()}", "w").close()
        while True:
            signal.pause()
    children.append(child)
signal.signal(signal.SIGUSR1, lambda *_: [os.kill(child, signal.SIGUSR1) for child in children])
while any(not os.path.exists(f"{ready}.{child}") for child in children):
    signal.sigtimedwait([signal.SIGUSR2], 0.02)
with open(ready, "w") as file:
    file.write(str(os.getpid()))
while True:
    signal.pause()
