# attack: use all memory in a child while the parent looks on
# ends: outOfMemory
dd if=/dev/zero of=/dev/null bs=1G count=1
