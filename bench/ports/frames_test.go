package ports

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/network"
	"orrery/internal/site/spec"
	"orrery/test/frames"
)

// The two nodes: ports orv1 and orv2 of one bridge, whose other ends are node1 and node2.
var (
	first  = frames.Party{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, IPv4: netip.MustParseAddr("10.8.69.11")}
	second = frames.Party{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, IPv4: netip.MustParseAddr("10.8.69.12")}
)

// script creates the nodes in a network namespace that bench/ports/run has created. It keeps the
// kernel from sending packets of its own there, and switches br_netfilter off if it is loaded.
const script = `
if [ -d /proc/sys/net/ipv6 ]; then echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; fi
ip link add name br0 type bridge && ip link set br0 up
for i in 1 2; do
	ip link add orv$i type veth peer name node$i address 02:00:00:00:00:0$i
	ip link set orv$i master br0 up && ip link set node$i up
done
for f in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -e $f ] || echo 0 >$f; done`

// BenchmarkFrames sends frames from node to node over the bridge, with and without the rules of two
// held ports. It measures what happens before the system call returns, which is everything but
// waking the receiver. It only uses functions that package network has had since it has such rules,
// so that it can measure former versions as well.
func BenchmarkFrames(b *testing.B) {
	if os.Getenv("ORRERY_BENCH_PORTS") == "" {
		b.Skip("bench/ports/run makes a network namespace for it")
	}
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	link, err := net.InterfaceByName("node1")
	if err != nil {
		b.Fatal(err)
	}
	out, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(out)
	if err := unix.SetsockoptInt(out, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		b.Fatal(err)
	}
	node1 := &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6}
	measure := func(rules string) {
		for _, name := range []string{"ipv4-tcp", "ipv4-udp", "ipv6-tcp", "arp-request"} {
			kind, _ := frames.Named(name)
			frame := kind.Frame(first, second)
			b.Run(rules+"/"+name, func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				begun := processorTime(b)
				for b.Loop() {
					if err := unix.Sendto(out, frame, 0, node1); err != nil && err != unix.ENOBUFS {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N), "cpu-ns/op")
			})
		}
	}
	measure("none")
	var node spec.Node // from its record, whose format is that of former versions
	if err := json.Unmarshal(fmt.Appendf(nil, `{"nics": [
		{"host_end": "orv1", "bridge": "br0", "mac": "%s", "address": "%s/24"},
		{"host_end": "orv2", "bridge": "br0", "mac": "%s", "address": "%s/24"}
	]}`, first.MAC, first.IPv4, second.MAC, second.IPv4), &node); err != nil {
		b.Fatal(err)
	}
	if err := network.AddAntiSpoof(context.Background(), network.Ports(&node)); err != nil {
		b.Fatal(err)
	}
	measure("held")
}

// processorTime returns the processor time of this thread in nanoseconds.
func processorTime(b *testing.B) int64 {
	var time unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &time); err != nil {
		b.Fatal(err)
	}
	return time.Nano()
}
