package network

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/site/spec"
)

// BenchmarkLoopback sends a one-byte message over the loopback of this network namespace and waits
// for the answer: without a site, with a site that has nat, and with one whose rules also track the
// loopback, as in former versions. bench/loopback/run runs it in separate namespaces.
func BenchmarkLoopback(b *testing.B) {
	if os.Getenv("ORRERY_BENCH_LOOPBACK") == "" {
		b.Skip("not run: run bench/loopback/run")
	}
	tables := map[string][]rule{"down": nil}
	shall, err := desiredRules([]spec.Network{cam, data})
	if err != nil {
		b.Fatal(err)
	}
	tables["up"], tables["tracked"] = shall, rules([]spec.Network{cam, data})
	for range 20 { // in turn, so that other load on the machine affects all of them
		for _, state := range []string{"down", "up", "tracked"} {
			if err := replaceTable(siteTable("karoo"), tables[state]); err != nil {
				b.Fatal(err)
			}
			b.Run("tcp/"+state, func(b *testing.B) { pingPong(b, "tcp4") })
			b.Run("udp/"+state, func(b *testing.B) { pingPong(b, "udp4") })
		}
	}
}

func pingPong(b *testing.B, proto string) {
	peer, here := joined(b, proto)
	defer here.Close()
	defer peer.Close()
	go func() {
		for one := make([]byte, 1); ; {
			if _, err := peer.Read(one); err != nil {
				return
			}
			_, _ = peer.Write(one)
		}
	}()
	one := make([]byte, 1)
	begun := processorTime()
	for b.Loop() {
		if _, err := here.Write(one); err != nil {
			b.Fatal(err)
		}
		if _, err := here.Read(one); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime()-begun)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the processor time of this process. On a busy host, this is more reliable
// than elapsed time.
func processorTime() time.Duration {
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// joined returns the two ends of a connection.
func joined(b *testing.B, proto string) (peer, here net.Conn) {
	if proto == "tcp4" {
		l, err := net.Listen(proto, "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		if here, err = net.Dial(proto, l.Addr().String()); err != nil {
			b.Fatal(err)
		}
		if peer, err = l.Accept(); err != nil {
			b.Fatal(err)
		}
		return peer, here
	}
	one, two := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5001}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5002}
	peer, err := net.DialUDP(proto, one, two)
	if err != nil {
		b.Fatal(err)
	}
	if here, err = net.DialUDP(proto, two, one); err != nil {
		b.Fatal(err)
	}
	return peer, here
}
