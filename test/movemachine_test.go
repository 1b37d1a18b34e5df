package test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"orrery/test/hosts"
	"orrery/test/need"
)

const moveMachineSite = `
site.name = "it-movevm"
[host.sv1]
address = "SV1"
[host.sv2]
address = "SV2"
[network.lan]
subnet = "10.99.247.0/24"
gateway = "10.99.247.1"
mtu = 1450
[image.debian]
suite = "bookworm"
[volume.data]
[node.m]
id = 11
engine = "kvm"
memory = "256MiB"
roles = ["keep"]
vm.disk = "qcow2"
vm.size = "1GiB"
vm.disks = [{ name = "more", disk = "raw", size = "1GiB" }]
`

// ownKernels copies the layers with kernels for each host, since the first machine that boots one
// adds to it.
const ownKernels = `cd /var/lib/orrery/store; for l in $(grep -l '"kernel"' */layer.json); do l=$(dirname $l)
	mkdir -p ../own && cp -a $l ../own && umount -l $l && rmdir $l && mv ../own/$l . || exit 1; done`

// TestMoveMachine: a virtual machine moves from host to host and back with its root and disks, even
// if the move is killed. Each time it boots, which takes long in emulation.
func TestMoveMachine(t *testing.T) {
	need.Integration(t)
	kills := need.Kills(0, 4)
	if kills == 0 {
		t.Skip("it boots a machine many times: make test-chaos does that")
	}
	s := newExample(t, "minimal", "it-movevm", "10.77.1.", "10.99.247.")
	s.write("roles/keep/role.toml", keepRole)
	s.write("site.toml", strings.NewReplacer("SV1", "local", "[host.sv2]\naddress = \"SV2\"\n",
		"").Replace(moveMachineSite))
	s.do("image", "build") // hosts cannot reach package archives
	guest := filepath.Join(filepath.Dir(program), "orrery-guest")
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program, "orrery-guest": guest},
		Store: filepath.Join(need.State(), "store")})
	s.carryBoth(h.At, "/root/move", moveMachineSite, hosts.AddressOf(2))
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), "/root/move", script, words...)
	}
	for on := 1; on <= 2; on++ {
		says(on, ownKernels, "status 0")
	}
	says(1, "orrery up", "status 0")
	from := 1
	if strings.Contains(says(2, "ls -A /var/lib/orrery/sites/it-movevm/nodes; true"), "11") {
		from = 2
	}
	says(1, `orrery exec m -- sh -c 'echo written > /root/f; echo rows > /data/rows; echo disk > /dev/vdb; sync'`,
		"status 0")
	for i := range 1 + kills {
		to := 3 - from
		move := "orrery move m --to sv" + strconv.Itoa(to)
		if i > 0 { // killed at the end of another step each time
			when := []string{"handing over", "receiving", "stopping", "starting"}[i%4]
			says(1, `rm -f /tmp/move.pid; sh -c 'echo $$ > /tmp/move.pid; exec `+move+`' 2>&1 |
				while read -r line; do case "$line" in *"`+when+` node m"*) kill -9 $(cat /tmp/move.pid);; esac; done; true`,
				"status 0")
			holders := 0
			for on := 1; on <= 2; on++ {
				holders += strings.Count(says(on,
					"for d in /var/lib/orrery/sites/it-movevm/nodes/11; do [ -e $d/node.json ] && [ ! -e $d/given.json ] && echo holds; done; true"),
					"holds")
			}
			if holders > 1 {
				t.Errorf("after a kill when it was %s, %d hosts have it", when, holders)
			}
		}
		out := says(1+i%2, "for i in $(seq 100); do "+move+" && break; sleep 0.2; done", "status 0")
		t.Log(regexp.MustCompile(`m is on host.*`).FindString(out))
		says(1, `orrery exec m -- sh -c 'cat /root/f /data/rows; head -n1 /dev/vdb'`, "written", "rows", "disk", "status 0")
		says(2, "orrery plan", "nothing to do", "status 0")
		from = to
	}
	says(1, "orrery down --volumes --yes-volumes it-movevm", "status 0")
}
