package reach

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// A memo is the digest of programs that had this stamp. A wrong one starts nothing on another host but what root has put there, or is told when the program comes there.
type memo struct {
	Stamp  string `json:"stamp"`
	Digest string `json:"digest"`
}

// stamp tells whether files are still what they were: whoever writes to one changes it. It takes down how long they are.
func (a *arm) stamp() (string, error) {
	text := ""
	for i, path := range a.paths {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return "", &os.PathError{Op: "stat", Path: path, Err: err}
		}
		a.sizes[i] = st.Size
		text += fmt.Sprintf("%d:%d %d %d.%09d %d.%09d; ", st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
	}
	return text, nil
}

// memos is where root's are: what root writes must not be in a directory of somebody who calls sudo.
const memos = "/var/cache/orrery"

func (a *Arms) memoOf(machine string) (path string, err error) {
	dir := a.Memos
	if dir == "" && os.Geteuid() == 0 {
		dir = memos
	} else if dir == "" {
		if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
		dir = filepath.Join(dir, "orrery")
	}
	return filepath.Join(dir, "helper-"+machine+".json"), nil
}

var proper = regexp.MustCompile(`^[0-9a-f]{64}$`)

// recall gives the digest of programs with a stamp; "": nobody has made it, or it was of others.
func (a *Arms) recall(machine, stamp string) string {
	path, err := a.memoOf(machine)
	if err != nil {
		return ""
	}
	m, err := host.ReadJSON[memo](path)
	if err != nil || m.Stamp != stamp || !proper.MatchString(m.Digest) {
		return ""
	}
	return m.Digest
}

// remember takes it down. If it cannot, the next run makes it again.
func (a *Arms) remember(machine, stamp, digest string) {
	if path, err := a.memoOf(machine); err == nil {
		_ = host.WriteJSON(path, 0o600, memo{stamp, digest})
	}
}
