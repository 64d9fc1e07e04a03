// CoreDNS with the few plugins that a cluster's DNS needs.
// The full program compiles in the client libraries of several clouds; this one builds in a fraction of the time.
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func main() {
	// The order in which a query passes the plugins; those that were not compiled in are left out.
	dnsserver.Directives = []string{
		"reload", "health", "ready", "errors", "cache", "loadbalance", "loop", "hosts", "kubernetes", "forward",
	}
	coremain.Run()
}
