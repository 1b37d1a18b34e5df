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

// MirrorStatus is the result of the last copy of a node's volume to its mirror.
type MirrorStatus struct {
	Volume  string    `json:"volume"`
	Node    string    `json:"node"`
	To      string    `json:"to"`
	At      time.Time `json:"at"` // start time
	Seconds float64   `json:"seconds"`
	Bytes   int64     `json:"bytes"`             // bytes of the files that were sent
	Problem string    `json:"problem,omitempty"` // error, or "" if it succeeded
	Good    time.Time `json:"good,omitzero"`     // start time of the last copy that succeeded
}

// String describes what was sent.
func (r MirrorStatus) String() string {
	return fmt.Sprintf("%s of %s: %s sent to %s in %.1f s", r.Volume, r.Node, humanize.Bytes(r.Bytes), r.To, r.Seconds)
}

func mirrorsPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "mirrors.json")
}

// ReadMirrorStatus returns the last result of every mirror that was ever made.
func ReadMirrorStatus(dirs host.Dirs, key string) ([]MirrorStatus, error) {
	all, err := host.ReadJSON[[]MirrorStatus](mirrorsPath(dirs, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// Save records a result. The caller must hold LockMirrors.
func (r MirrorStatus) Save(dirs host.Dirs, key string) error {
	all, err := ReadMirrorStatus(dirs, key)
	if err != nil {
		all = nil // damaged: its content is not worth ending all mirroring
	}
	if r.Problem == "" {
		r.Good = r.At
	}
	fresh := []MirrorStatus{r}
	for _, old := range all {
		if old.Volume != r.Volume || old.Node != r.Node {
			fresh = append(fresh, old)
		} else if r.Problem != "" && old.To == r.To {
			fresh[0].Good = old.Good
		}
	}
	return host.WriteJSON(mirrorsPath(dirs, key), 0o600, fresh)
}

// LockMirrors takes the lock for mirroring volumes of a site. The lock of the site itself is not
// taken, since a large archive takes hours.
func LockMirrors(ctx context.Context, dirs host.Dirs, key string, h host.Holder) (*host.Lock, error) {
	return host.TakeLock(ctx, filepath.Join(dirs.Site(key), "mirrors.lock"), h)
}
