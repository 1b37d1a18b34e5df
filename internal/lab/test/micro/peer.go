package micro

import (
	"context"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/net/serve"
)

// port is where `orrery-micro serve` listens at the far end for the first copy.
const port = 5611

// peer starts the server at the far end and returns its address, or "" if the test has no far end.
// The caller calls done to stop the server.
func (m *micro) peer(ctx context.Context, t *test.Trial) (peer string, done func(), err error) {
	if !m.asked.Far {
		return "", func() {}, nil
	}
	if err := t.NeedFar(); err != nil {
		return "", nil, err
	}
	peer = netip.AddrPortFrom(t.Far.Address, uint16(port+t.Copy)).String()
	server, err := serve.Start(ctx, t.Far, serve.TCP, port+t.Copy,
		host.Command{Args: t.Far.Command(place.Micro, "serve", "--listen", peer)})
	if err != nil {
		return "", nil, err
	}
	return peer, server.Stop, nil
}

// args returns the arguments of orrery-micro for a set of rows.
func (m *micro) args(t *test.Trial, rows []row, peer string, seconds float64) []string {
	args := []string{"run", "--time", strconv.FormatFloat(seconds, 'g', -1, 64), "--only", names(rows)}
	if t.Near.Dir != "" {
		args = append(args, "--dir", t.Near.Dir)
	}
	if peer != "" {
		args = append(args, "--peer", peer)
	}
	if m.asked.Pin { // each concurrent copy uses another processor
		args = append(args, "--pin", strconv.Itoa(t.Copy))
	}
	for _, word := range shell(t.Near) {
		args = append(args, "--shell", word)
	}
	return args
}

// shell returns the words that run the layer's dash. They begin with an absolute path, because
// execve(2) does not search the PATH and fork-sh must not measure such a search.
func shell(p *place.Place) []string {
	words := p.Command("dash")
	if !path.IsAbs(words[0]) {
		words[0] = "/bin/" + words[0]
	}
	return words
}

func names(rows []row) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.name)
	}
	return strings.Join(all, ",")
}
