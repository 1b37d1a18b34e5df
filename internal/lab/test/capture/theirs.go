package capture

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/spead"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// spead2Tools runs spead2's own programs, spead2_send and spead2_recv, once for each trial.
type spead2Tools struct {
	options
	near, far *place.Place
	at        netip.AddrPort
	got       int // buffer of the receiver
}

func (p *spead2Tools) buffer() int { return p.got }

func (p *spead2Tools) close() {}

// assumedFullRate is the assumed rate for a trial at full speed. It determines the number of heaps, because
// spead2_send takes a number of heaps and not a duration.
const assumedFullRate = 20e9

func (p *spead2Tools) trial(ctx context.Context, rate float64, length time.Duration) (sent spead.Sent,
	got spead.Received, err error) {
	size := float64(p.Heap) * float64(p.Packet) / float64(p.Packet-40) // approximate, with headers
	asked := rate
	if math.IsInf(rate, 1) {
		asked, rate = assumedFullRate, 0
	}
	heaps := max(p.Sockets, int(math.Round(asked/8*length.Seconds()/size)))
	// the receiver binds its sockets in order and does not report when it is ready
	last := int(p.at.Port()) + p.Sockets - 1
	receiver, err := serve.Start(ctx, p.near, serve.UDP, last, host.Command{Args: p.receiver(length)})
	if err != nil {
		return sent, got, err
	}
	defer receiver.Stop()
	report, err := place.Output(ctx, p.far, p.far.Command("spead2_send", p.sender(heaps, rate)...)...)
	if err != nil {
		return sent, got, err
	}
	said, err := receiver.Wait()
	if err != nil {
		return sent, got, err
	}
	if sent, err = parseSent(report); err != nil {
		return sent, got, err
	}
	sent.Heaps, sent.Asked = uint64(heaps), rate
	sent.Packets = uint64(heaps * packets(int(p.Heap), int(p.Packet)))
	got, err = parseReceived([]byte(said))
	got.Buffer = obtained([]byte(said), int(p.Buffer))
	p.got = got.Buffer
	return sent, got, err
}

// receiver returns the command of the receiver. It ends after the heaps that end the streams. If
// these are lost, it ends after SIGINT, and prints its results too.
func (p *spead2Tools) receiver(length time.Duration) []string {
	most := 3*length + 5*time.Second
	args := []string{"--quiet", "--mem-pool", "--mem-lower", "1024", "--packet", "9200", "--buffer",
		strconv.Itoa(int(p.Buffer)), "--threads", strconv.Itoa(p.Sockets)}
	return append([]string{"timeout", "--preserve-status", "-s", "INT", fmt.Sprintf("%.1f", most.Seconds())},
		p.near.Command("spead2_recv", append(args, p.endpoints()...)...)...)
}

func (p *spead2Tools) sender(heaps int, rate float64) []string {
	args := []string{"--heap-size", strconv.Itoa(int(p.Heap) &^ 3), "--heaps", strconv.Itoa(heaps), "--packet",
		strconv.Itoa(int(p.Packet)),
		"--rate", strconv.FormatFloat(rate/1e9, 'f', -1, 64)}
	return append(args, p.endpoints()...)
}

func (p *spead2Tools) endpoints() []string {
	var all []string
	for i := range p.Sockets {
		all = append(all, netip.AddrPortFrom(p.at.Addr(), p.at.Port()+uint16(i)).String())
	}
	return all
}

// packets returns the number of packets that spead2_send makes of a heap with one item.
func packets(heap, packet int) int {
	packet &^= 7
	first := packet - 48
	if heap <= first {
		return 1
	}
	return 1 + (heap-first+packet-40-1)/(packet-40)
}

var sentLine = pattern.New(`(?m)^Sent (\d+) bytes in ([0-9.e+-]+) seconds, ([0-9.e+-]+) Gb/s$`)

// parseSent parses the output of spead2_send.
func parseSent(text []byte) (s spead.Sent, err error) {
	m := sentLine().FindSubmatch(text)
	if m == nil {
		return s, problem.New(problem.Failed, "spead2_send printed %.100q", text).Try("the lab reads spead2 3 and 4")
	}
	s.Bytes, _ = strconv.ParseUint(string(m[1]), 10, 64)
	s.Seconds, _ = strconv.ParseFloat(string(m[2]), 64)
	if s.Seconds > 0 {
		s.Rate = float64(s.Bytes) * 8 / s.Seconds
	}
	return s, nil
}

var (
	receivedLine = pattern.New(`(?m)^Received (\d+) heaps$`)
	statLine     = pattern.New(`(?m)^([a-z_]+): (\d+)$`)
	bufferLine   = pattern.New(`requested socket buffer size (\d+) but only received (\d+)`)
)

// parseReceived parses the last output of spead2_recv.
func parseReceived(text []byte) (r spead.Received, err error) {
	m := receivedLine().FindSubmatch(text)
	if m == nil {
		return r, problem.New(problem.Failed, "spead2_recv printed %.100q", text).Try("the lab reads spead2 3 and 4")
	}
	r.Heaps, _ = strconv.ParseUint(string(m[1]), 10, 64)
	for _, s := range statLine().FindAllSubmatch(text, -1) {
		n, _ := strconv.ParseUint(string(s[2]), 10, 64)
		switch string(s[1]) {
		case "packets":
			r.Packets = n
		case "incomplete_heaps_evicted", "incomplete_heaps_flushed":
			r.Partial += n
		case "batches":
			r.Calls = n
		}
	}
	return r, nil
}

// obtained returns the buffer size from spead2_recv's warning, or the requested size if there is
// none.
func obtained(text []byte, asked int) int {
	if m := bufferLine().FindSubmatch(text); m != nil {
		asked, _ = strconv.Atoi(string(m[2]))
	}
	return asked
}
