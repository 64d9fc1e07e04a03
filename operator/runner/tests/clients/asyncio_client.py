# prints: 400780
import asyncio
async def fetch(n):
    reader, writer = await asyncio.open_connection("web.example", 80)
    writer.write(b"GET /size/%d HTTP/1.0\r\nHost: w\r\n\r\n" % n)
    text = await reader.read()
    writer.close()
    return len(text.split(b"\r\n\r\n", 1)[1])
async def main():
    print(sum(await asyncio.gather(*(fetch(10000 + n) for n in range(40)))))
asyncio.run(main())
