package spead

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"orrery/test/need"
)

//go:embed testdata/peer.py
var peerScript string

// python returns a Python with spead2, which stays installed between runs.
func python(t *testing.T) string {
	t.Helper()
	need.Integration(t)
	venv := filepath.Join(need.State(), "spead2", "venv")
	program := filepath.Join(venv, "bin", "python")
	if exec.Command(program, "-c", "import spead2.recv, spead2.send").Run() == nil {
		return program
	}
	if out, err := exec.Command("sh", "-c", `python3 -m venv "$1" && "$1/bin/pip" install --quiet spead2==4.5.1`, "sh",
		venv).CombinedOutput(); err != nil {
		t.Skipf("no spead2 for Python: %v\n%s", err, out)
	}
	return program
}

// free returns an unused address of this machine.
func free(t *testing.T) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// TestTheyReceive: spead2 receives every heap with its names, types and values.
func TestTheyReceive(t *testing.T) {
	program := python(t)
	for name, o := range map[string]SendOptions{
		"large heaps": {Heap: 300_001, Packet: 1472, GSO: true},
		"jumbo":       {Heap: 1 << 20, Packet: 8972, GSO: true},
		"one packet":  {Heap: 100, Packet: 1472, GSO: true},
		"without gso": {Heap: 65536, Packet: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			o.To = free(t)
			theirs := exec.Command(program, "-c", peerScript, "receive", o.To.Addr().String(), portOf(o.To))
			out, err := theirs.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			theirs.Stderr = os.Stderr
			if err := theirs.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = theirs.Process.Kill(); _ = theirs.Wait() }()
			lines := bufio.NewScanner(out)
			lines.Scan() // wait until it listens
			s, err := Connect(o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			// Slowly, so that the buffer of the socket holds what comes while the receiver has no processor.
			sent, err := s.Send(context.Background(), 20, time.Minute, 5e7)
			if err != nil || sent.Heaps != 20 {
				t.Fatal(sent, err)
			}
			s.End(EndAttempts)
			lines.Scan()
			if got, want := lines.Text(), "20 heaps are right"; got != want {
				t.Errorf("spead2 says %q, want %q", got, want)
			}
		})
	}
}

// TestTheySend: every heap from spead2 arrives completely, with its values and descriptors.
func TestTheySend(t *testing.T) {
	program := python(t)
	at := free(t)
	heaps := 0
	names := map[string]bool{}
	r, err := Listen(ReceiveOptions{At: at, Buffer: 8 << 20, Packet: 9200, Whole: func(h *Heap) {
		items, err := h.Items()
		if err != nil {
			t.Error(err)
		}
		heaps++
		for _, i := range items {
			switch i.ID {
			case idDescriptor:
				names[nameOf(t, i.Data)] = true
			case 0x1000: // successive numbers from 100 times the heap's number
				for k := range len(i.Data) / 4 {
					if got := binary.BigEndian.Uint32(i.Data[4*k:]); got != uint32(100*heaps+k) {
						t.Fatalf("heap %d: number %d is %d", heaps, k, got)
					}
				}
				if len(i.Data) != 4*50_000 {
					t.Errorf("heap %d: %d bytes", heaps, len(i.Data))
				}
			case 0x1001:
				if i.Immediate && i.Value != 1<<40+uint64(heaps) {
					t.Errorf("heap %d: the immediate item is %#x", heaps, i.Value)
				}
			case 0x1002:
				if string(i.Data) != "receptor" {
					t.Errorf("heap %d: the text is %q", heaps, i.Data)
				}
			default:
				t.Errorf("heap %d has an item %#x", heaps, i.ID)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sent := make(chan error, 1)
	go func() {
		sent <- exec.Command(program, "-c", peerScript, "send", at.Addr().String(), portOf(at)).Run()
	}()
	got, err := r.Receive(context.Background(), 10*time.Second, 2*time.Second)
	if err != nil || <-sent != nil {
		t.Fatal(err)
	}
	if heaps != 10 || got.Heaps != 10 || got.Stopped != 1 || got.Damaged > 0 || got.Packets != got.InWhole ||
		len(names) != 3 || !names["visibilities"] {
		t.Errorf("%d heaps, %+v, descriptors %v", heaps, got, names)
	}
}

// nameOf returns the name in a descriptor.
func nameOf(t *testing.T, b []byte) (name string) {
	t.Helper()
	a := newAssembly(func(h *Heap) {
		items, err := h.Items()
		if err != nil {
			t.Error(err)
		}
		for _, i := range items {
			if i.ID == idName {
				name = string(i.Data)
			}
		}
	})
	var p Packet
	if err := p.Decode(b); err != nil {
		t.Error(err)
		return ""
	}
	a.add(&p)
	return name
}

// TestTheirPrograms: spead2's own C++ programs send or receive, and both ends have the same counts
// and bytes.
func TestTheirPrograms(t *testing.T) {
	need.Integration(t)
	dir := os.Getenv("ORRERY_SPEAD2")
	if dir == "" {
		dir = filepath.Join(need.State(), "spead2", "build", "src")
	}
	if _, err := os.Stat(filepath.Join(dir, "spead2_recv")); err != nil {
		t.Skip("no spead2_recv: bench/lab/spead/install builds it")
	}
	at := free(t)
	r, err := Listen(ReceiveOptions{At: at, Buffer: 8 << 20, Packet: 9200})
	if err != nil {
		t.Fatal(err)
	}
	theirs := exec.Command(filepath.Join(dir, "spead2_send"), "--heaps", "50", "--heap-size", "262144", "--rate", "0.5",
		at.String())
	if err := theirs.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := r.Receive(context.Background(), 10*time.Second, 2*time.Second)
	_ = theirs.Wait()
	r.Close()
	if err != nil || got.Heaps != 50 || got.Stopped != 1 {
		t.Errorf("%+v, %v", got, err)
	}

	var out strings.Builder
	theirs = exec.Command("timeout", "-s", "INT", "60", filepath.Join(dir, "spead2_recv"), "--quiet", at.String())
	theirs.Stdout = &out
	if err := theirs.Start(); err != nil {
		t.Fatal(err)
	}
	waitListening(t, at.Port()) // it does not report it
	s, err := Connect(SendOptions{To: at, Heap: 262144, Packet: 1472, GSO: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(context.Background(), 50, time.Minute, 5e8); err != nil {
		t.Fatal(err)
	}
	s.End(EndAttempts)
	_ = theirs.Wait()
	if !regexp.MustCompile(`(?m)^Received 50 heaps$`).MatchString(out.String()) {
		t.Error(out.String())
	}
}

// waitListening waits until a socket of this network namespace receives UDP at a port (proc_net(5)).
func waitListening(t *testing.T, port uint16) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		sockets, err := os.ReadFile("/proc/net/udp")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(sockets), fmt.Sprintf(":%04X ", port)) {
			return
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("nothing listens at UDP port %d", port)
		}
	}
}

func portOf(at netip.AddrPort) string {
	_, port, _ := net.SplitHostPort(at.String())
	return port
}
