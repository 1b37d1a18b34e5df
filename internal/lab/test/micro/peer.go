package micro

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// port is where `orrery-micro serve` listens at the far end for the first copy.
const port = 5611

// patience is how long the far end may take until it listens.
const patience = 20 * time.Second

// peer starts what answers at the far end, and gives its address; done ends it. Without a far end there is none: "".
func (m *micro) peer(ctx context.Context, t *test.Trial) (peer string, done func(), err error) {
	if !m.asked.Far {
		return "", func() {}, nil
	}
	if t.Far == nil || !t.Far.Address.IsValid() {
		return "", nil, problem.New(problem.Unable, "there is no far end to measure latencies to").At(t.Near.Name)
	}
	peer = netip.AddrPortFrom(t.Far.Address, uint16(port+t.Copy)).String()
	ctx, cancel := context.WithCancel(ctx)
	ready := &listening{said: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- t.Far.Run(ctx, host.Command{Args: t.Far.Command(place.Micro, "serve", "--listen", peer), Stdout: ready})
	}()
	select {
	case <-ready.said:
		return peer, func() {
			cancel()
			wait(ended)
		}, nil
	case err = <-ended:
	case <-time.After(patience):
		cancel()
		err = fmt.Errorf("it does not listen after %s: %w", patience, <-ended)
	}
	cancel()
	return "", nil, problem.New(problem.Unable, "the far end cannot serve %s", peer).At(t.Far.Name).Because(err).
		Try("free the port, or see why the address is not there")
}

// wait lets a server end that was told to: that it was killed is no error.
func wait(ended <-chan error) {
	for range ended {
		return
	}
}

// listening waits for the line that says so.
type listening struct {
	once sync.Once
	said chan struct{}
	text host.Tail
}

func (l *listening) Write(p []byte) (int, error) {
	_, _ = l.text.Write(p)
	if strings.Contains(l.text.String(), `"listening"`) {
		l.once.Do(func() { close(l.said) })
	}
	return len(p), nil
}

// args are the arguments of a run.
func (m *micro) args(t *test.Trial, peer string, seconds float64) []string {
	args := []string{"run", "--time", strconv.FormatFloat(seconds, 'g', -1, 64), "--only", m.names()}
	if t.Near.Dir != "" {
		args = append(args, "--dir", t.Near.Dir)
	}
	if peer != "" {
		args = append(args, "--peer", peer)
	}
	if m.asked.Pin { // copies that run at once: each on another processor
		args = append(args, "--pin", strconv.Itoa(t.Copy))
	}
	for _, word := range shell(t.Near) {
		args = append(args, "--shell", word)
	}
	return args
}

// shell gives the words that run the layer's dash. execve(2) searches no path, as fork-sh shall not measure that.
func shell(p *place.Place) []string {
	words := p.Command("dash")
	if !path.IsAbs(words[0]) {
		words[0] = "/bin/" + words[0]
	}
	return words
}

func (m *micro) names() string {
	var names []string
	for _, r := range m.rows {
		names = append(names, r.name)
	}
	return strings.Join(names, ",")
}
