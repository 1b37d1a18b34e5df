package whohas

import (
	"context"
	"net/netip"
	"os/exec"
	"slices"
	"testing"
	"time"

	"orrery/test/need"
)

// TestAsk: all machines with an address answer, even if the client's neighbour table has one of them.
func TestAsk(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	const script = `set -e
ip link add br0 type bridge && ip addr add 10.1.0.1/24 dev br0 && ip link set br0 up
for i in 1 2 3; do
	ip link add p$i type veth peer name e$i address 02:00:00:00:00:0$i
	ip link set p$i master br0 up
	unshare --net sleep 600 >/dev/null 2>&1 &
	pid=$!
	while [ "$(readlink /proc/$pid/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
	ip link set e$i netns $pid
	nsenter -t $pid --net sh -c "ip addr add 10.1.0.1$i/24 dev e$i; ip link set e$i up; [ $i = 3 ] || ip addr add 10.1.0.5/32 dev e$i"
done`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Skipf("not run: %v\n%s", err, out)
	}
	c := Client{Space: "/proc/self/ns/net", Link: "br0", Address: netip.MustParseAddr("10.1.0.1")}
	for began, target := time.Now(), netip.MustParseAddr("10.1.0.5"); ; {
		got, err := Ask(t.Context(), c, target, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(got, []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}) {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%v have the address", got)
		}
	}
	if got, err := Ask(t.Context(), c, netip.MustParseAddr("10.1.0.77"), 200*time.Millisecond); err != nil || got != nil {
		t.Errorf("%v have an address of nobody: %v", got, err)
	}
}

// TestSenderOf: only answers about the address count.
func TestSenderOf(t *testing.T) {
	a := &Asker{target: [4]byte{10, 1, 0, 5}}
	good := slices.Concat(make([]byte, 12), []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 1, 0, 5},
		make([]byte, 10))
	if mac, ok := a.senderOf(good); !ok || mac != "02:00:00:00:00:01" {
		t.Error(mac, ok)
	}
	for at, value := range map[int]byte{12: 0x86, 21: 1, 31: 6} {
		other := slices.Clone(good)
		other[at] = value
		if mac, ok := a.senderOf(other); ok {
			t.Errorf("with byte %d = %d, %s answers", at, value, mac)
		}
	}
	for n := range good {
		if _, ok := a.senderOf(good[:n]); ok {
			t.Errorf("%d bytes are an answer", n)
		}
	}
}

// TestOpen refuses what cannot ask.
func TestOpen(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fe80::1")
	for _, c := range []Client{{Space: "/proc/self/ns/net", Link: "lo", Address: v6},
		{Space: "/none", Link: "lo", Address: v4}, {Space: "/proc/self/ns/net", Link: "none-such", Address: v4}} {
		if _, err := Ask(context.Background(), c, v4, time.Millisecond); err == nil {
			t.Errorf("%+v can ask", c)
		}
	}
}
