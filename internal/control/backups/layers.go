package backups

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/backup/vault"
	"orrery/internal/control/snapshots"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// A layerAssignment decides which host sends which layer. Each layer is sent once, by a host that has the
// trusted content of the layer (decision 42).
type layerAssignment struct {
	fleet *apply.Fleet
	gave  func(layer string) (host string) // the host that sent a layer to the last backup
	// turns at which the hosts wait for each other after listing their layers
	turns []*snapshots.Barrier

	mutex sync.Mutex
	turn  map[string]int               // next turn of each host
	held  map[string]map[string]string // digest of a layer's content, by host
	gives map[string][]string          // layers that each host sends
}

func newLayerAssignment(f *apply.Fleet, gave func(layer string) string) *layerAssignment {
	s := &layerAssignment{fleet: f, gave: gave, turn: map[string]int{}, held: map[string]map[string]string{},
		gives: map[string][]string{}}
	for range 2 {
		s.turns = append(s.turns, snapshots.NewBarrier(f.Names(), s.assignLayers))
	}
	return s
}

// waitForHosts records which layers a host has. When all hosts have arrived, it returns the layers that
// this host sends.
func (s *layerAssignment) waitForHosts(ctx context.Context, host string, held map[string]string) ([]string, error) {
	s.mutex.Lock()
	for digest, content := range held {
		if s.held[digest] == nil {
			s.held[digest] = map[string]string{}
		}
		s.held[digest][host] = content
	}
	at := s.turns[s.turn[host]]
	s.turn[host]++
	s.mutex.Unlock()
	if err := at.Wait(ctx, host, 0); err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.gives[host], nil
}

// end makes all hosts stop waiting.
func (s *layerAssignment) end(err error) {
	for _, g := range s.turns {
		g.End(err)
	}
}

// assignLayers chooses a host for each layer that has none. It prefers the host that sent the layer to
// the last backup, which need not send it again. Otherwise it chooses the host with the fewest
// layers to send.
func (s *layerAssignment) assignLayers() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	given := map[string]bool{}
	for _, digests := range s.gives {
		for _, digest := range digests {
			given[digest] = true
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(s.held)) {
		if given[digest] {
			continue
		}
		var of []string // hosts that report the layer
		var said []string
		own := -1
		for _, h := range s.fleet.All {
			if content, ok := s.held[digest][h.Name]; ok {
				if h.Local() {
					own = len(said)
				}
				of, said = append(of, h.Name), append(said, content)
			}
		}
		believed, one := image.TrustedDigest(said, own), ""
		for i, host := range of {
			if said[i] != believed {
				continue
			}
			if one == "" || host == s.gave(digest) || one != s.gave(digest) && len(s.gives[host]) < len(s.gives[one]) {
				one = host
			}
		}
		s.gives[one] = append(s.gives[one], digest)
	}
	return nil
}

// Layers records which layers this host has, and returns those that it sends.
func (p *hostBarrier) Layers(ctx context.Context, held map[string]string) ([]string, error) {
	return p.of.layers.waitForHosts(ctx, p.host, held)
}

// mergeLayers adds the records of layers to the manifest. Each layer's record is that of the host
// that sent it.
func (t *multiHostBackup) mergeLayers() {
	m := t.into.Manifest
	gave, listed := map[string]string{}, map[string]bool{}
	for _, p := range t.parts {
		for i := range p.Layers {
			if l := &p.Layers[i]; p.Sent[l.Digest] {
				gave[l.Digest] = l.Content
				m.Layers, listed[l.Digest] = append(m.Layers, *l), true
			}
		}
	}
	lacks := map[string]bool{}
	for _, p := range t.parts {
		for i := range p.Layers {
			l := &p.Layers[i]
			if !listed[l.Digest] {
				m.Layers, listed[l.Digest] = append(m.Layers, *l), true
			}
			switch content, given := gave[l.Digest]; {
			case !t.order.Layers:
			case !given && !lacks[l.Digest]:
				lacks[l.Digest] = true
				m.Left = append(m.Left, fmt.Sprintf("layer %s: no host sent it; a restore builds it from its recipe",
					sanitize.Line(l.Title)))
			case given && content != l.Content:
				m.Left = append(m.Left, fmt.Sprintf("layer %s of host %s: the backup has different content from the same recipe",
					sanitize.Line(l.Title), p.Host))
			}
		}
	}
}

// layers returns the layers that nodes need: their records in the backup, and the trees of those
// that it contains.
func (h *placement) layers(nodes []nodedir.Record) (records []image.Record, trees []vault.Tree) {
	needs := map[string]bool{}
	for i := range nodes {
		for _, digest := range nodes[i].Layers() {
			needs[digest] = true
		}
	}
	for _, l := range h.manifest.Layers {
		if tree, ok := h.manifest.Tree("layer/" + l.Digest); needs[l.Digest] || h.onlyHost() != "" {
			records = append(records, l)
			if ok {
				t := *tree
				t.Host = ""
				trees = append(trees, t)
			}
		}
	}
	return records, trees
}

// reportDistrusted reports the layers that hosts do not accept from the backup. It shows only titles that
// the backup has too, and not names made up by a host.
func (r *restoreRun) reportDistrusted(builds []string) {
	var titles []string
	for i := range r.manifest.Layers {
		if title := r.manifest.Layers[i].Title; slices.Contains(builds, title) {
			titles = append(titles, title)
		}
	}
	if len(titles) > 0 {
		slices.Sort(titles)
		r.notice("layers built from their recipes or copied between hosts, not from the backup: %s (--trust-layers uses those of a backup that you made)",
			sanitize.Line(humanize.List(slices.Compact(titles), 4)))
	}
}
