# A service that keeps what it knows in memory alone.
import http.server
import sys

orders = 0


class Counter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global orders
        orders += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"order %d\n" % orders)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Counter)
with open("log", "w") as log:
    log.write("ready\n")
server.serve_forever()
