import http.client, os, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
connection = Connection("posse")
connection.request("POST", sys.argv[2], open(sys.argv[3]).read(), {"content-type": "application/json"})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
