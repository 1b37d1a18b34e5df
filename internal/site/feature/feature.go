// Package feature names the features of a host's kernel that nodes need because of their limits. They
// are tried only on the hosts of sites whose nodes need them, because trying one may load modules.
package feature

import (
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/device"
	"orrery/internal/site/diskio"
)

// The features.
const (
	Rate  = "net.rate"    // the rate of a node's traffic can be limited
	Delay = "net.latency" // frames can be delayed and lost
	Disk  = "disk"        // what a node reads and writes can be limited
)

// devicePrefix begins the names of devices.
const devicePrefix = "device "

// Device returns the name of the feature that a node, as SITE/ID, can have a device of the host.
func Device(node string, d device.Device) string { return devicePrefix + node + " " + d.Encode() }

// ParseDevice returns the node and the device of a feature, or false if it is another feature.
func ParseDevice(name string) (node string, d device.Device, ok bool) {
	rest, ok := strings.CutPrefix(name, devicePrefix)
	node, word, _ := strings.Cut(rest, " ")
	if !ok {
		return "", d, false
	}
	d, ok = device.Decode(word)
	return node, d, ok
}

// Of returns the features that a node needs.
func Of(n *site.Node) (all []string) {
	add := func(needed bool, feature string) {
		if needed && !slices.Contains(all, feature) {
			all = append(all, feature)
		}
	}
	add(n.Limits.Disk != (diskio.Limits{}), Disk)
	for _, nic := range n.NICs {
		add(nic.Traffic.Rate > 0, Rate)
		add(nic.Traffic.Delays(), Delay)
	}
	return all
}
