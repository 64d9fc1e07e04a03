# Measures itself with http.client. It is the same program in a sandbox and outside of one.
import http.client, json, socket, statistics, sys, time

task = json.load(sys.stdin)
address, port = task["host"], task["port"]
headers = {"Host": "%s:%d" % (task["name"], port)}
BLOCK = bytes(1_000_000)


def connect(to=None):
    return http.client.HTTPConnection(to or address, port, timeout=60)


def ask(connection, path="/small"):
    connection.request("GET", path, headers=headers)
    with connection.getresponse() as response:
        return response.read()


def once(to=None):
    connection = connect(to)
    ask(connection)
    connection.close()


def median_us(work, bursts, pause):
    times = []
    for burst in range(bursts + 1):
        for _ in range(40):
            begin = time.perf_counter_ns()
            work()
            # The first burst is the warm-up.
            if burst:
                times.append(time.perf_counter_ns() - begin)
        time.sleep(pause)
    return statistics.median(times) / 1000


def requests():
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][4][0]
    kept = connect()
    # Below the broker's limit of new connections in a second.
    return {
        "new": median_us(once, 10, 0.5),
        "resolved": median_us(lambda: once(found), 10, 0.5),
        "kept": median_us(lambda: ask(kept), 10, 0.05),
    }


def down():
    connection, buffer = connect(), bytearray(1 << 20)
    connection.request("GET", "/bytes", headers={**headers, "X-Length": str(task["bytes"])})
    with connection.getresponse() as response:
        got = 0
        while count := response.readinto(buffer):
            got += count
    assert got == task["bytes"], got


def up():
    connection, blocks = connect(), task["bytes"] // len(BLOCK)
    body = (BLOCK for _ in range(blocks))
    connection.request("POST", "/", body, {**headers, "Content-Length": str(blocks * len(BLOCK))})
    with connection.getresponse() as response:
        response.read()


def transfer(work):
    begin, used = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - used}


def hold():
    ask(connect(), "/begin")
    held = []
    for number in range(task["connections"]):
        connection = connect()
        ask(connection, "/hold")
        held.append(connection.sock)
        if number % 20 == 19:
            time.sleep(0.5)
    for each in held:
        each.recv(1)
    return {"held": len(held)}


tasks = {"requests": requests, "down": lambda: transfer(down), "up": lambda: transfer(up), "hold": hold}
print(json.dumps(tasks[task["do"]]()))
