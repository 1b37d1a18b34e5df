package ports

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/test/frames"
)

// BenchmarkFrames sends frames from node to node over a bridge, in a network namespace that bench/ports/run makes: without
// rules, and through those of two ports that are held. It counts what is done before the system call returns, which is all
// but the wakening of who receives.
func BenchmarkFrames(b *testing.B) {
	if os.Getenv("ORRERY_BENCH_PORTS") == "" {
		b.Skip("bench/ports/run makes a network namespace for it")
	}
	build(b)
	out, index := socket(b, "node1", 0)
	defer unix.Close(out)
	if err := unix.SetsockoptInt(out, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		b.Fatal(err)
	}
	node1 := &unix.SockaddrLinklayer{Ifindex: index, Halen: 6}
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
	hold(b, "orv1", node(first))
	hold(b, "orv2", node(second))
	measure("held")
}

// processorTime returns that of this thread, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var spec unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spec); err != nil {
		b.Fatal(err)
	}
	return spec.Nano()
}
