# attack: use all memory and take the runner along
# ends: outOfMemory
hold = []
while True:
    hold.append(bytearray(1 << 20))
    hold[-1][::4096] = b"x" * 256
