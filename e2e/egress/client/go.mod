module skillet.dev/egress-client

go 1.19
