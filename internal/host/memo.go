package host

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/text/pattern"
)

// Cache is where whoever runs this program keeps what can be made again: what root believes must
// not be in a directory of somebody who calls sudo.
func Cache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/orrery", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "orrery"), err
}

// Stamp tells one state of a file from another: whoever writes to it changes it.
func Stamp(st *unix.Stat_t) string {
	return fmt.Sprintf("%d:%d %d %d.%09d %d.%09d", st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec,
		st.Ctim.Nsec)
}

// A memo is the digest of what was in some state, which takes long to make.
type memo struct {
	State  string `json:"state"`
	Digest string `json:"digest"`
}

var proper = pattern.New(`^[0-9a-f]{64}$`)

// Recall returns the digest that a file of this machine keeps of what is in this state; "": it
// keeps none, or that of another state.
func Recall(path, state string) string {
	m, err := ReadJSON[memo](path)
	if err != nil || m.State != state || !proper().MatchString(m.Digest) {
		return ""
	}
	return m.Digest
}

// Remember keeps it there. If it cannot, it is made again.
func Remember(path, state, digest string) { _ = WriteJSON(path, 0o600, memo{state, digest}) }
