# prints: b'hello web.example\n'
# prints: b'hello web.example\n'
# prints: b'100000 bytes\n'
# prints: b'100000 bytes\n'
# prints: b'100000 bytes\n'
import os, ssl, urllib.request, http.client
print(urllib.request.urlopen("http://web.example/hello").read())
trust = ssl.create_default_context(cafile=os.environ["CERTIFICATE"])
print(urllib.request.urlopen("https://web.example/hello", context=trust).read())
kept = http.client.HTTPConnection("web.example")
for _ in range(3):
    kept.request("POST", "/count", b"x" * 100000)
    print(kept.getresponse().read())
