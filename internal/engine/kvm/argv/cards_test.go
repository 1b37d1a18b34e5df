package argv

import (
	"encoding/json"
	"testing"

	"orrery/internal/site"
)

// TestCardOf: a card that is plugged is described as on the command line.
func TestCardOf(t *testing.T) {
	for name, c := range map[string]struct {
		vm    site.VM
		vhost bool
		want  string
	}{
		"one queue": {site.VM{}, false, `{"Netdev":{"fd":"tap fast 0","id":"card-fast","type":"tap"},` +
			`"Device":{"bus":"slot3","driver":"virtio-net-pci","id":"card-fast","mac":"02:00:00:00:00:02","netdev":"card-fast","romfile":""}}`},
		"served": {site.VM{}, true, `{"Netdev":{"fd":"tap fast 0","id":"card-fast","type":"tap","vhost":true,"vhostfd":"vhost fast 0"},` +
			`"Device":{"bus":"slot3","driver":"virtio-net-pci","id":"card-fast","mac":"02:00:00:00:00:02","netdev":"card-fast","romfile":""}}`},
		"queues, served": {site.VM{Queues: 2}, true,
			`{"Netdev":{"fds":"tap fast 0:tap fast 1","id":"card-fast","type":"tap","vhost":true,"vhostfds":"vhost fast 0:vhost fast 1"},` +
				`"Device":{"bus":"slot3","driver":"virtio-net-pci","id":"card-fast","mac":"02:00:00:00:00:02","mq":true,"netdev":"card-fast","romfile":"","vectors":6}}`},
	} {
		n := someNode()
		n.VM = c.vm
		text, err := json.Marshal(CardOf(n, n.NICs[1], Slot(3), c.vhost))
		if err != nil || string(text) != c.want {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
