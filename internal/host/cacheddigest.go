package host

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/text/pattern"
)

// CacheDir returns the directory where the user who runs this program keeps what can be made again.
// For root, it is outside the home directory: root must not trust what is in a directory of a user
// who calls sudo.
func CacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/orrery", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "orrery"), err
}

// FileVersion returns a text that identifies one state of a file. Every write to the file changes it.
func FileVersion(st *unix.Stat_t) string {
	return fmt.Sprintf("%d:%d %d %d.%09d %d.%09d", st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec,
		st.Ctim.Nsec)
}

// A cachedDigest is the digest of some content in one state. The digest takes long to compute.
type cachedDigest struct {
	State  string `json:"state"`
	Digest string `json:"digest"`
}

var digestPattern = pattern.New(`^[0-9a-f]{64}$`)

// LoadDigest returns the digest that StoreDigest stored at path for this state, or "" if there is none or
// it is that of another state.
func LoadDigest(path, state string) string {
	m, err := ReadJSON[cachedDigest](path)
	if err != nil || m.State != state || !digestPattern().MatchString(m.Digest) {
		return ""
	}
	return m.Digest
}

// StoreDigest stores the digest of the given state at path. It ignores errors: the digest is then
// computed again.
func StoreDigest(path, state, digest string) { _ = WriteJSON(path, 0o600, cachedDigest{state, digest}) }
