package check

import (
	"time"

	"orrery/internal/site"
	"orrery/internal/site/traffic"
	"orrery/internal/text/humanize"
)

// checkTraffic checks the limits of what passes through the interfaces of nodes.
func checkTraffic(ix *index, found *findings) {
	for n := range each(ix.Nodes) {
		for _, nic := range n.NICs {
			if nic.Traffic != (traffic.Limits{}) {
				checkInterfaceTraffic(ix, found, n, nic)
			}
		}
	}
}

func checkInterfaceTraffic(ix *index, found *findings, n *site.Node, nic site.NIC) {
	l, key := nic.Traffic, func(name string) []string { return atNode(n, "net", nic.Network, name) }
	if kind, known := ix.kindByName[nic.Network]; known && !kind.HasHostEnds() {
		found.report(atNode(n, "net", nic.Network), "remove the limits, or make the network one of kind bridge or routed",
			"net.%s: traffic on a network of kind %s cannot be limited, because the host has no end of the node's link",
			nic.Network, kind.Name)
		return
	}
	switch {
	case l.Burst == 0:
	case l.Rate == 0:
		found.report(key("burst"), "set rate, too", "net.%s: burst without rate limits nothing", nic.Network)
	case l.Burst < traffic.MinBurst || l.Burst > traffic.MaxBurst:
		found.report(key("burst"), "leave it out for what passes in a millisecond",
			"net.%s: burst is not between %s and %s", nic.Network, humanize.Bytes(traffic.MinBurst),
			humanize.Bytes(traffic.MaxBurst))
	}
	for i, d := range []time.Duration{l.Latency, l.Jitter} {
		name := []string{"latency", "jitter"}[i]
		if d != 0 && (d > traffic.MaxLatency || d%time.Microsecond != 0) {
			found.report(key(name), `such as "5ms" or "250us"`, "net.%s: %s = %v is not a number of microseconds up to %v",
				nic.Network, name, d, traffic.MaxLatency)
		}
	}
	if l.Jitter > l.Latency {
		found.report(key("jitter"), "lower it, or raise latency", "net.%s: jitter %v is more than latency %v", nic.Network,
			l.Jitter, l.Latency)
	}
}
