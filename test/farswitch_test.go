package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/hosts"
	"orrery/test/need"
)

// TestFarSwitch: a release is staged on two hosts and goes live on both, started from one of them.
// The other host rolls it back. If a host loses power during a switch, the split set is reported,
// and the next run brings it to one release.
func TestFarSwitch(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-farsw", "10.77.1.", "10.99.245.")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	for i, local := range map[int]string{1: `"local"`, 2: fmt.Sprintf("%q", hosts.AddressOf(2))} {
		text := spanSite("it-farsw", "gateway = \"10.99.243.1\"\n", []string{"a", "b"}, 11) +
			"[release.700]\n[release.701]\n[hook.page]\non = [\"trial-ended\"]\ncommand = [\"/bin/sh\", \"-c\", \"cat >>/tmp/page\"]\n"
		if i == 2 {
			text = strings.NewReplacer(`"local"`, fmt.Sprintf("%q", hosts.AddressOf(1)), local, `"local"`).Replace(text)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "site.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.carry(h.At(i), "/root/fleet")
	}
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), "/root/fleet", script, words...)
	}
	// apart checks that the live instances of the two nodes reach each other, and so do those in
	// quarantine, but neither reach the others. Both have the same addresses, so each node counts
	// the packets that it received.
	apart := func(live, quarantined int) {
		t.Helper()
		for from, to := range map[int]int{live: quarantined, quarantined: live} {
			// echo requests
			counted := fmt.Sprintf("orrery exec --release %d b -- sh -c 'grep ^Icmp: /proc/net/snmp | cut -d\" \" -f10'", to)
			before := says(1, counted, "status 0")
			says(1, fmt.Sprintf("for i in $(seq 50); do orrery exec --release %d a -- ping -c1 -W1 10.99.243.12 && echo reached && break; done",
				from), "reached")
			if after := says(1, counted, "status 0"); after != before {
				t.Errorf("what release %d sent has come to release %d:\n%s\n%s", from, to, before, after)
			}
		}
		says(1, fmt.Sprintf("orrery exec --release %d all -- ping -c1 -W1 10.99.243.1", live), "status 0")
		says(2, "orrery plan", "nothing to do", "status 0")
	}
	says(1, "orrery up", "status 0")
	says(1, "orrery stage --release 700", "releases.lock has a new digest for release 700: commit the file", "status 0")
	says(2, "orrery switch --release 700", "releases.lock: release 700 is not in it", "orrery release trust 700",
		"status 9")
	s.share("releases.lock", h.At(1), h.At(2), "/root/fleet")
	apart(0, 700)
	says(2, "orrery release show 700", "a (700011), b (700012):", "roles ", "content ", "status 0")
	says(1, "orrery release diff 0 700", "a, b:", "the same", "status 0")
	t.Log(says(1, "orrery switch --release 700", "2 nodes at release 700", "All hosts moved their links within",
		"status 0"))
	says(2, "orrery release ls", "700", "live, confirmed", "status 0")
	says(2, "orrery exec --release 700 all -- cat /etc/hostname", "a | a", "b | b", "status 0")
	says(2, "orrery plan", "nothing to do", "status 0")
	apart(700, 0)
	says(2, "orrery rollback", "2 nodes at release none", "status 0")
	apart(0, 700)
	says(1, "orrery exec --release 0 all -- hostname", "a | a", "b | b", "status 0")

	// A trial confirmed from the other host stays live. Without a confirmation, each host goes back
	// on its own: the hosts are cut off from one another and from the control host.
	says(1, "orrery switch --release 700 --confirm-within 1h", "otherwise it goes back to release none", "status 12")
	says(2, "orrery confirm", "is confirmed", "status 0")
	says(2, "orrery rollback", "2 nodes at release none", "status 0")
	says(1, "orrery switch --release 700 --confirm-within 5s", "status 12")
	if err := h.At(1).Disconnect(hosts.Both); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 2; i++ {
		says(i, "cd /var/lib/orrery; for i in $(seq 300); do ! grep -q '\"trial\"\\|\"switch\"' sites/it-farsw/releases.json && grep -q 'in time' log/later-trial-it-farsw.log && break; sleep 0.1; done; cat /var/lib/orrery/log/later-trial-it-farsw.log; grep -c reverted /var/lib/orrery/sites/it-farsw/releases.json",
			"it was not confirmed in time", "1")
		says(i, "for i in $(seq 100); do grep reverted /tmp/page && break; sleep 0.1; done", `"event":"trial-ended"`,
			`"host":"`+hosts.NameOf(i)+`"`, `"release":700`)
	}
	if err := h.At(1).Reconnect(); err != nil {
		t.Fatal(err)
	}
	says(2, "orrery plan", "nothing to do", "status 0")
	says(2, "orrery confirm", "release 700 has gone back: it was not confirmed in time", "status 13")
	apart(0, 700)

	// The second host loses power when it has recorded the intended switch.
	says(1, "orrery switch --release 700 > /tmp/out 2>&1 & echo begun", "begun")
	for range 20_000 {
		text, err := h.At(2).Output("cat", "/var/lib/orrery/sites/it-farsw/releases.json")
		if err == nil && strings.Contains(text, `"switch"`) || strings.Contains(text, `"a": 700`) {
			break
		}
	}
	if err := h.At(2).Kill(); err != nil {
		t.Fatal(err)
	}
	t.Log(says(1, "for i in $(seq 300); do pgrep -f '^orrery ' > /dev/null || break; sleep 0.1; done; cat /tmp/out",
		"status 0"))
	if err := h.At(2).Boot(); err != nil {
		t.Fatal(err)
	}
	says(1, "for i in $(seq 100); do orrery up && break; sleep 0.2; done", "status 0")
	says(2, "orrery release ls; orrery exec all -- hostname", "a | a", "b | b", "2 of 2 nodes", "status 0")
	says(2, "orrery plan", "nothing to do", "status 0")
	hostileHost(t, h.At(2), says)
	says(2, "orrery down", "status 0")
}

// hostileHost: root on the second host forges a release that mounts a directory of the first host,
// and a record that makes it live. This has no effect on the first host, which is the control host.
func hostileHost(t *testing.T, evil hosts.Host, says func(on int, script string, words ...string) string) {
	t.Helper()
	const kept = "/var/lib/orrery/sites/it-farsw/"
	says(1, "echo good > /root/canary", "status 0")
	says(2, `cd `+kept+` && cp -a releases/700 releases/7 && cd releases/7/site &&
		sed -i '1i [volume.steal]\npath = "/root"\n' site.toml && sed -i 's/^\[node.*/&\nroles = ["thief"]/' site.toml && echo '[release.7]' >> site.toml && mkdir -p roles/thief &&
		printf '[[volume]]\nname = "steal"\npath = "/mnt"\n[[step]]\nname = "x"\nwhen = "boot"\nscript = "echo evil >/mnt/canary"\n' > roles/thief/role.toml`,
		"status 0")
	written := 0
	write := func(change func(active map[string]any)) { // a record that claims to be newer than any other
		t.Helper()
		text, err := evil.Output("cat", kept+"releases.json")
		if err != nil {
			t.Fatal(err)
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			t.Fatal(err)
		}
		past, _ := record["past"].([]any)
		written++
		record["past"], record["id"] = append(past, record["id"]), fmt.Sprintf("%024x", written)
		change(record["active"].(map[string]any))
		forged, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		into := evil.Command("tee", kept+"releases.json")
		into.Stdin = bytes.NewReader(forged)
		if out, err := into.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, forge := range []struct {
		nodes []string
		want  []string
	}{
		{[]string{"a", "b"}, []string{"host sv2 reports of release 7 of node a that it is live", "--without sv2", "status 6"}},
		{[]string{"b"}, []string{"releases.lock: release 7 is not in it", "orrery release trust 7", "status 9"}}, // its own
	} {
		live := map[string]any{}
		write(func(active map[string]any) {
			maps.Copy(live, active)
			for _, node := range forge.nodes {
				active[node] = 7
			}
		})
		says(1, "orrery up", forge.want...)
		if len(forge.nodes) == 1 { // works while no copy is used
			says(1, "orrery status && orrery exec a -- true && orrery logs -n 1 a > /dev/null", "status 0")
		}
		write(func(active map[string]any) { maps.Copy(active, live) })
		says(1, "cat /root/canary; orrery exec a -- ls -A /mnt", "good\n1 of 1 nodes succeeded.")
	}
	says(1, "orrery up", "status 0")
}
