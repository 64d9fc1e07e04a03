// The pause program: holds a pod's namespaces open.
module skillet.dev/e2e/cluster/pause

go 1.26.0
