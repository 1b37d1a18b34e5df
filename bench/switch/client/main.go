// Client measures for how long none of a set of nodes answers.
//
// It sends each node 1,000 requests a second over UDP and by ping, and opens a TCP connection every
// 10 ms. With a number as argument, it does so that many times less often. The kernel answers
// pings, so they show the network alone, even when the service has to wait for a processor. Client
// reads commands from standard input, one per line, and prints a line of JSON after each:
//
//	targets ADDRESS…   begin to send requests to these nodes
//	await              wait until all of them answer in each way
//	begin              begin a window
//	changed            wait until each node answers from another instance than at the window's beginning
//	end                end it: the longest times without an answer, for each node, in seconds
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
)

const (
	port    = 7007
	timeout = time.Minute
)

// How often requests are sent to each node.
var (
	everyUDP = time.Millisecond
	everyTCP = 10 * time.Millisecond
)

// An ear is one way in which a node answers.
type ear struct {
	mu      sync.Mutex
	last    time.Time
	token   [8]byte
	before  [8]byte // at the beginning of the window
	longest time.Duration
}

func (e *ear) hear(token [8]byte, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if gap := at.Sub(e.last); !e.last.IsZero() && gap > e.longest {
		e.longest = gap
	}
	if at.After(e.last) {
		e.last, e.token = at, token
	}
}

func (e *ear) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.longest, e.before = 0, e.token
}

// gap returns the longest time without an answer since begin, including one that has not ended yet.
func (e *ear) gap() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(e.longest, time.Since(e.last)).Seconds()
}

func (e *ear) answers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Since(e.last) < 5*everyTCP
}

func (e *ear) changed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.token != e.before
}

type target struct {
	address  netip.AddrPort
	udp, tcp ear
	ping     ear // the answer does not tell the instance
}

type client struct{ targets []*target }

func main() {
	if len(os.Args) > 1 {
		slower, err := strconv.Atoi(os.Args[1])
		if err != nil {
			log.Fatal(err)
		}
		everyUDP, everyTCP = everyUDP*time.Duration(slower), everyTCP*time.Duration(slower)
	}
	var c client
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		said := map[string]any{"done": verb}
		switch verb {
		case "targets":
			c.start(strings.Fields(rest))
		case "await":
			c.until(said, func(t *target) bool { return t.udp.answers() && t.tcp.answers() && t.ping.answers() })
		case "changed":
			c.until(said, func(t *target) bool { return t.udp.changed() && t.tcp.changed() })
		case "begin":
			for _, t := range c.targets {
				t.udp.begin()
				t.tcp.begin()
				t.ping.begin()
			}
		case "end":
			for _, t := range c.targets {
				said["udp"] = append(list(said["udp"]), t.udp.gap())
				said["tcp"] = append(list(said["tcp"]), t.tcp.gap())
				said["ping"] = append(list(said["ping"]), t.ping.gap())
			}
		default:
			log.Fatalf("client: unknown command %q", lines.Text())
		}
		if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
			log.Fatal(err)
		}
	}
}

func list(x any) []float64 {
	all, _ := x.([]float64)
	return all
}

func (c *client) until(said map[string]any, condition func(*target) bool) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(time.Millisecond) {
		lacking := 0
		for _, t := range c.targets {
			if !condition(t) {
				lacking++
			}
		}
		if lacking == 0 {
			return
		}
		if time.Now().After(deadline) {
			said["failed"] = fmt.Sprintf("%d of %d not %s within %s", lacking, len(c.targets), said["done"], timeout)
			return
		}
	}
}

func (c *client) start(addresses []string) {
	byAddress := map[netip.Addr]*target{}
	for _, text := range addresses {
		t := &target{address: netip.AddrPortFrom(netip.MustParseAddr(text), port)}
		c.targets = append(c.targets, t)
		byAddress[t.address.Addr()] = t
	}
	socket, err := net.ListenUDP("udp4", nil)
	if err != nil {
		log.Fatal(err)
	}
	go listen(socket, byAddress)
	pinger, err := icmp.ListenPacket("ip4:icmp", "0.0.0.0")
	if err != nil {
		log.Fatal(err)
	}
	go pong(pinger, byAddress)
	go every(everyUDP, func() { c.pings(pinger) })
	go every(everyUDP, func() {
		for _, t := range c.targets {
			// ignore errors: a lost request shows as a missing answer
			_, _ = socket.WriteToUDPAddrPort(make([]byte, 8), t.address)
		}
	})
	for i, t := range c.targets {
		go func() {
			time.Sleep(everyTCP * time.Duration(i) / time.Duration(len(c.targets)))
			every(everyTCP, func() { go t.connect() })
		}()
	}
}

// every calls do at regular intervals and skips those it has missed.
func every(interval time.Duration, do func()) {
	for tick := range time.NewTicker(interval).C {
		_ = tick
		do()
	}
}

// pings sends echo requests to the kernel of each node (RFC 792).
func (c *client) pings(socket *icmp.PacketConn) {
	request, err := (&icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: os.Getpid() & 0xffff}}).Marshal(nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range c.targets {
		_, _ = socket.WriteTo(request, &net.IPAddr{IP: t.address.Addr().AsSlice()})
	}
}

func pong(socket *icmp.PacketConn, byAddress map[netip.Addr]*target) {
	for buffer := make([]byte, 64); ; {
		n, from, err := socket.ReadFrom(buffer)
		if err != nil || n == 0 || buffer[0] != byte(ipv4.ICMPTypeEchoReply) {
			continue
		}
		if address, ok := netip.AddrFromSlice(from.(*net.IPAddr).IP); ok && byAddress[address.Unmap()] != nil {
			byAddress[address.Unmap()].ping.hear([8]byte{}, time.Now())
		}
	}
}

func listen(socket *net.UDPConn, byAddress map[netip.Addr]*target) {
	for buffer := make([]byte, 64); ; {
		n, from, err := socket.ReadFromUDPAddrPort(buffer)
		if t := byAddress[from.Addr().Unmap()]; err == nil && t != nil && n >= 8 {
			t.udp.hear([8]byte(buffer), time.Now())
		}
	}
}

func (t *target) connect() {
	c, err := net.DialTimeout("tcp4", t.address.String(), time.Second)
	if err != nil {
		return
	}
	defer c.Close()                   //nolint:errcheck // the error has no consequence
	_ = c.(*net.TCPConn).SetLinger(0) // close without TIME_WAIT
	_ = c.SetDeadline(time.Now().Add(time.Second))
	var token [8]byte
	if n, err := c.Read(token[:]); err == nil && n == len(token) {
		t.tcp.hear(token, time.Now())
	}
}
