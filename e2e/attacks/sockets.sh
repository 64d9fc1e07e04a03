# attack: reach anything with the tools an image brings
for host in 127.0.0.1 169.254.169.254 10.96.0.1 1.1.1.1; do
    if command -v nc >/dev/null && nc -w 1 "$host" 443 </dev/null 2>/dev/null; then echo "nc $host"; exit 1; fi
    if command -v wget >/dev/null && wget -q -T 1 -t 1 -O - "http://$host/" 2>/dev/null; then echo "wget $host"; exit 1; fi
    if command -v bash >/dev/null && bash -c "exec 3<>/dev/tcp/$host/443" 2>/dev/null; then echo "bash $host"; exit 1; fi
    if command -v ping >/dev/null && ping -c 1 -w 1 "$host" >/dev/null 2>&1; then echo "ping $host"; exit 1; fi
done
exit 0
