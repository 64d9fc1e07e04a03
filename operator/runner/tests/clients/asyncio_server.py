# prints: 3000000
# prints: 98
# prints: True
# prints: 2 127.0.0.1
import asyncio, socket
async def echo(reader, writer):
    writer.write(await reader.read())
    await writer.drain()
    writer.close()
async def ask(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(bytes([n]) * 100000)
    writer.write_eof()
    return len(await reader.read())
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(sum(await asyncio.gather(*(ask(port, n) for n in range(30)))))
    try:
        await asyncio.start_server(echo, "127.0.0.1", port)
    except OSError as error:
        print(error.errno)
    server.close()
    await server.wait_closed()
    again = await asyncio.start_server(echo, "127.0.0.1", port)
    print(again.sockets[0].getsockname() == ("127.0.0.1", port))
    both = await asyncio.start_server(echo, None, 0)
    print(len(both.sockets), socket.create_connection(("127.0.0.1", both.sockets[0].getsockname()[1])).getpeername()[0])
asyncio.run(main())
