package network

import (
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestLinkLocalAddresses: a cloud provides metadata at 169.254.169.254, and nodes with nat try to
// read it.
//
// Promise (Networks): A node with `nat` does not reach 169.254.0.0/16 unless its network asks for
// it.
func TestLinkLocalAddresses(t *testing.T) {
	if !sandbox(t) {
		return
	}
	const cloud = "169.254.169.254"
	outside := world(t)
	outside.do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		at, err := netlink.ParseAddr(cloud + "/32")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(link, at)
	})
	twin := routerOf("dev1", data)
	makeAll(t, cam, venet, twin)
	bridged := newNode(t, cam, "orv1", "10.8.67.11/24")
	twins := newNode(t, twin, "orv2", "10.8.68.11/24")
	routed := newPlace(t, site.RoutedName("karoo", "karoo", "a", "venet"), "10.8.71.11/24", "10.8.71.1")
	routed.route(t, venet, "10.8.71.11")

	if _, err := call(cloud, timeout); err != nil {
		t.Errorf("the host itself does not reach it: %v", err)
	}
	for _, p := range []*place{bridged, twins, routed} {
		p.misses(t, cloud)
		p.reaches(t, "192.0.2.2", "192.0.2.1")
	}
	asked := []spec.Network{cam, venet, twin}
	for i := range asked {
		asked[i].Metadata = true
	}
	makeAll(t, asked...)
	for _, p := range []*place{bridged, twins, routed} {
		p.reaches(t, cloud, "192.0.2.1")
	}
	same(t, asked[:2])
	makeAll(t, cam)
	bridged.misses(t, cloud)
}
