package ferry

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
)

// A Search requests pieces that a vault has lost from a host. The host learns about nothing, and is
// asked for nothing, except what it has sent itself.
type Search struct {
	Host string
	// by the host's names of the trees that have lost something: their intact entries
	Trees  map[string][]vault.Entry
	Wanted map[vault.Digest]bool
}

// NewSearch returns the search for what a host sent for backups of a site and the vault has lost.
func NewSearch(in *vault.Repository, key, host string, lost map[vault.Digest]bool) (*Search, error) {
	s := &Search{Host: host, Trees: map[string][]vault.Entry{}, Wanted: map[vault.Digest]bool{}}
	ids, err := in.Backups()
	if err != nil {
		return nil, err
	}
	from := vault.NewPieces(in)
	latest, damaged := map[string][]vault.Entry{}, map[string]bool{}
	for _, id := range slices.Backward(ids) {
		m, err := in.Manifest(id)
		if err != nil || m.Key != key {
			continue // the manifest is damaged, or of another site
		}
		for i := range m.Trees {
			if t := &m.Trees[i]; t.Host == host {
				name := nameOnHost(t.Name, host)
				whole, some := s.survey(from, t, lost)
				damaged[name] = damaged[name] || some
				if _, seen := latest[name]; !seen {
					latest[name] = whole
				}
			}
		}
	}
	for name := range damaged {
		if damaged[name] {
			s.Trees[name] = latest[name]
		}
	}
	return s, nil
}

// survey returns the entries of a tree that are intact, and whether something else is lost.
func (s *Search) survey(from *vault.Pieces, t *vault.Tree, lost map[vault.Digest]bool) (whole []vault.Entry,
	some bool) {
	lacks := func(pieces []vault.Digest) (some bool) {
		for _, d := range pieces {
			if lost[d] {
				s.Wanted[d], some = true, true
			}
		}
		return some
	}
	if lacks(t.List) {
		return nil, true
	}
	err := from.Each(t, func(e *vault.Entry) error {
		gone := false
		for _, x := range e.Data {
			gone = lacks(x.Pieces) || gone
		}
		if some = some || gone; !gone {
			whole = append(whole, *e)
		}
		return nil
	})
	return whole, some && err == nil
}

// Run requests the pieces, and stores what the host sends in the vault.
func (s *Search) Run(ctx context.Context, into backup.Adder, way io.ReadWriter) error {
	l := newMessageConn(way)
	err := s.sendRequest(l)
	for wanted := maps.Clone(s.Wanted); err == nil; {
		var kind byte
		var content []byte
		if kind, content, err = l.recv(); err != nil {
			break
		}
		switch kind {
		case msgDone:
			return nil
		case msgBlock:
			err = vault.Unpack(content, func(d vault.Digest, piece []byte) error {
				if !wanted[d] {
					return errors.New("it sent content that was not requested")
				}
				delete(wanted, d)
				_, err := into.Add(piece)
				return err
			})
		default:
			err = errUnexpected
		}
	}
	return explainFailure(ctx, s.Host, err)
}

func (s *Search) sendRequest(l *messageConn) error {
	if err := l.sendJSON(msgRequest, Request{All: true, Layers: true, Snapshots: true}); err != nil {
		return err
	}
	for name, entries := range s.Trees {
		if err := l.sendMessage(msgTree, []byte(name)); err != nil {
			return err
		}
		if err := l.sendList(entries); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(s.Wanted)), vault.PieceSize/len(vault.Digest{})) {
		var text []byte
		for _, d := range some {
			text = append(text, d[:]...)
		}
		if err := l.sendMessage(msgWanted, text); err != nil {
			return err
		}
	}
	return l.sendMessage(msgStart, nil)
}

// SendMissing reads trees of which a vault has lost something, and sends the wanted pieces. The nodes are
// not frozen: content that changes during the search is not what was lost.
func SendMissing(ctx context.Context, at HostSite, way io.ReadWriter) error {
	l := newMessageConn(way)
	var o Request
	if err := l.recvJSON(msgRequest, &o); err != nil {
		return err
	}
	g := newBackupSender(l, at, o)
	g.pack.Only, g.reading.Only = map[vault.Digest]bool{}, map[string]bool{}
	err := g.recvFormer()
	if err == nil {
		err = g.reading.ReadAll(ctx)
	}
	if err == nil {
		err = g.reading.Each(func(_ vault.Tree, entries []vault.Entry, _ []string) error {
			text, err := vault.WriteList(entries)
			if err == nil {
				_, err = g.pack.AddAll(text)
			}
			return err
		})
	}
	if wrong := g.close(); err == nil {
		err = wrong
	}
	if err == nil {
		err = l.sendMessage(msgDone, nil)
	}
	return err
}

// addWanted notes pieces that are wanted, and no others.
func (g *backupSender) addWanted(digests []byte) error {
	if g.pack.Only == nil || len(digests)%len(vault.Digest{}) != 0 {
		return errUnexpected
	}
	for d := range slices.Chunk(digests, len(vault.Digest{})) {
		g.pack.Only[vault.Digest(d)] = true
	}
	return nil
}
