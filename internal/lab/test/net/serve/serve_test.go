package serve

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

func TestPorts(t *testing.T) {
	// Output of cat /proc/net/tcp /proc/net/tcp6 with an iperf3 server, whose IPv6 socket serves
	// IPv4 too.
	const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22368001 1 000000006600b1d8 100 0 0 10 0
   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 22368002 1 000000006600b1d8 100 0 0 10 0
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:14B5 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22368783 1 000000006600b1d8 100 0 0 10 0
`
	if got, want := ports(tcp, listenState[TCP]), map[int]bool{8080: true, 5301: true}; !maps.Equal(got, want) {
		t.Errorf("ports %v, want %v", got, want)
	}
	const udp = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 3384: 028C630A:14B6 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 22370349 2 00000000de92b296 0
`
	if got, want := ports(udp, listenState[UDP]), map[int]bool{5302: true}; !maps.Equal(got, want) {
		t.Errorf("ports %v, want %v", got, want)
	}
	if got := ports("\n: :\nx 1:zz y 0A\n", listenState[TCP]); len(got) != 0 {
		t.Errorf("ports of nonsense: %v", got)
	}
}

// TestStart: the error for a server that ends at once contains its output. A port in use is
// reported before anything is started.
func TestStart(t *testing.T) {
	t.Parallel()
	here := &place.Place{Runner: host.Local{Name: "here"}, Name: "bare"}
	_, err := Start(t.Context(), here, TCP, port(t),
		host.Command{Args: []string{"/bin/sh", "-c", "echo no such card >&2; exit 3"}})
	if err == nil || !strings.Contains(err.Error(), "ended before listening") ||
		!strings.Contains(err.Error(), "no such card") {
		t.Errorf("of a server that ends: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	_, err = Start(t.Context(), here, TCP, taken, host.Command{Args: []string{"/bin/false"}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("bare: tcp port %d is in use", taken)) {
		t.Errorf("of a port that is taken: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err = Start(ctx, here, TCP, port(t), host.Command{Args: []string{"/bin/sleep", "60"}}); err == nil {
		t.Error("a server that never listens is there")
	}
}

// TestStop: after Stop the server has ended and its port is free.
func TestStop(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3 as a server")
	}
	here := &place.Place{Runner: host.Local{Name: "here"}, Name: "bare"}
	n := port(t)
	s, err := Start(t.Context(), here, TCP, n, host.Command{Args: []string{"python3", "-c", fmt.Sprintf(
		"import socket,time; s=socket.create_server(('127.0.0.1',%d)); print('up',flush=True); time.sleep(60)", n)}})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if s.Output() != "up" {
		t.Errorf("it said %q", s.Output())
	}
	if err := WaitUntilFree(t.Context(), here, TCP, n); err != nil {
		t.Error(err)
	}
}

// port returns an unused port.
func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
