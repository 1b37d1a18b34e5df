package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"orrery/internal/host"
	"orrery/internal/text/humanize"
)

// Mirrored says how copying a volume of a node to its mirror went the last time.
type Mirrored struct {
	Volume  string    `json:"volume"`
	Node    string    `json:"node"`
	To      string    `json:"to"`
	At      time.Time `json:"at"` // when it began
	Seconds float64   `json:"seconds"`
	Bytes   int64     `json:"bytes"`             // of files that were sent
	Problem string    `json:"problem,omitempty"` // "": it succeeded
	Good    time.Time `json:"good,omitzero"`     // when the last one began that succeeded
}

// String says what was sent.
func (r Mirrored) String() string {
	return fmt.Sprintf("%s of %s: %s sent to %s in %.1f s", r.Volume, r.Node, humanize.Bytes(r.Bytes), r.To, r.Seconds)
}

func mirrorsPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "mirrors.json")
}

// ReadMirrored returns, for every mirror that was ever made, how the last time went.
func ReadMirrored(dirs host.Dirs, key string) ([]Mirrored, error) {
	all, err := host.ReadJSON[[]Mirrored](mirrorsPath(dirs, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// Note puts on record how one went. Only the holder of LockMirrors may call it.
func (r Mirrored) Note(dirs host.Dirs, key string) error {
	all, err := ReadMirrored(dirs, key)
	if err != nil {
		all = nil // it is damaged: what it said is not worth an end of mirroring
	}
	if r.Problem == "" {
		r.Good = r.At
	}
	fresh := []Mirrored{r}
	for _, old := range all {
		if old.Volume != r.Volume || old.Node != r.Node {
			fresh = append(fresh, old)
		} else if r.Problem != "" && old.To == r.To {
			fresh[0].Good = old.Good
		}
	}
	return host.WriteJSON(mirrorsPath(dirs, key), 0o600, fresh)
}

// LockMirrors is held by whoever mirrors volumes of a site. The lock of the site itself is not: a
// large archive takes hours.
func LockMirrors(ctx context.Context, dirs host.Dirs, key string, h host.Holder) (*host.Lock, error) {
	return host.TakeLock(ctx, filepath.Join(dirs.Site(key), "mirrors.lock"), h)
}
