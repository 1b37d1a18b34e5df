package sitefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site/twin"
	"orrery/internal/text/pattern"
)

// LockName is the name of the file in a site directory that records the copies of it for staged
// releases.
const LockName = "releases.lock"

const (
	lockVersion  = 1
	maxLockBytes = 1 << 20
)

// A Lock is the content of releases.lock. It has a digest for each staged release of a site and of
// its twins. Hosts store a copy of the site directory for each such release (package sitearchive), and
// the digest is that of the copy. A host may send anything as the copy, so a control host uses only
// a copy with this digest. The file belongs under version control, which distributes it to all
// control hosts.
type Lock struct {
	path    string
	digests map[string]map[int]string // twin ("" for the site itself) -> release -> digest
	text    []byte                    // text of the file, or nil if it does not exist
}

// lockFile is the format of the file.
type lockFile struct {
	Version int               `toml:"version"`
	Release map[string]string `toml:"release"`
	Twin    map[string]struct {
		Release map[string]string `toml:"release"`
	} `toml:"twin"`
}

var lockDigest = pattern.New(`^sha256:[0-9a-f]{64}$`)

// ReadLock reads the releases.lock of a site directory. If the file does not exist, the Lock has no
// releases.
func ReadLock(dir string) (*Lock, error) {
	d, err := open(dir, dir)
	if err != nil {
		return nil, err
	}
	defer d.close()
	l := &Lock{path: filepath.Join(d.path, LockName), digests: map[string]map[int]string{}}
	l.text, err = d.tree.ReadFile(LockName, maxLockBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = l.parse()
	}
	if err != nil {
		return nil, problem.New(problem.Mistake, "cannot be read").At(l.path).Because(problem.PathErrorCause(err)).
			Try("restore it from version control; if two branches changed it, keep the lines of both")
	}
	return l, nil
}

// parse decodes the text of the file.
func (l *Lock) parse() error {
	var file lockFile
	if err := toml.NewDecoder(bytes.NewReader(l.text)).DisallowUnknownFields().Decode(&file); err != nil {
		if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
			line, _ := at.Position()
			return fmt.Errorf("line %d: %w", line, err)
		}
		return err
	}
	if file.Version != lockVersion {
		return fmt.Errorf("this Orrery reads version %d, but it has version %d", lockVersion, file.Version)
	}
	if err := l.add("", file.Release); err != nil {
		return err
	}
	for name, table := range file.Twin {
		if err := twin.ValidName(name); err != nil {
			return err
		}
		if err := l.add(name, table.Release); err != nil {
			return err
		}
	}
	return nil
}

// add adds the releases of the site or of a twin.
func (l *Lock) add(twin string, releases map[string]string) error {
	for text, digest := range releases {
		number, err := strconv.Atoi(text)
		if err != nil || number <= 0 || strconv.Itoa(number) != text {
			return fmt.Errorf("%q is not the number of a release", text)
		}
		if !lockDigest().MatchString(digest) {
			return fmt.Errorf("release %d: %q is not a digest", number, digest)
		}
		l.Set(twin, number, digest)
	}
	return nil
}

// Path returns the path of the file.
func (l *Lock) Path() string { return l.path }

// Digest returns the digest of a release of the site (twin "") or of a twin, or "" if the file has
// none.
func (l *Lock) Digest(twin string, release int) string { return l.digests[twin][release] }

// Set sets the digest of a release.
func (l *Lock) Set(twin string, release int, digest string) {
	if l.digests[twin] == nil {
		l.digests[twin] = map[int]string{}
	}
	l.digests[twin][release] = digest
}

// Remove removes releases.
func (l *Lock) Remove(twin string, releases ...int) {
	for _, release := range releases {
		delete(l.digests[twin], release)
	}
}

// RemoveTwin removes all releases of a twin.
func (l *Lock) RemoveTwin(twin string) { delete(l.digests, twin) }

// Write writes the file unless its content is the same. It keeps the owner and mode of the existing
// file. A new file gets those of site.toml. If Write fails, it returns an Unable problem, and the
// file is unchanged.
func (l *Lock) Write() error {
	text := l.encode()
	if bytes.Equal(text, l.text) || l.text == nil && len(l.digests) == 0 {
		return nil
	}
	if err := l.replace(text); err != nil {
		return problem.New(problem.Unable, "cannot be written").At(l.path).Because(problem.PathErrorCause(err)).
			Try("use a writable site directory")
	}
	l.text = text
	return nil
}

// replace writes the file unless it has changed since it was read.
func (l *Lock) replace(text []byte) error {
	dir := filepath.Dir(l.path)
	d, err := openDirectory(dir, dir)
	if err != nil {
		return err
	}
	defer d.close()
	now, err := d.tree.ReadFile(LockName, maxLockBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, l.text) {
		return errors.New("another command changed it; run this one again")
	}
	like := LockName
	if l.text == nil {
		like = Name
	}
	st, err := d.tree.Lstat(like)
	if err != nil {
		return err
	}
	if like == LockName && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it is a symbolic link")
	}
	return replace(d.tree.Fd(), LockName, st, text)
}

const lockHead = `# Digests of the staged releases that hosts store. Orrery uses no other copies.
# orrery stage and orrery release write this file. Commit it with site.toml.
`

// encode returns the text of the file. Each release has its own line, so that branches that stage
// different releases can be merged.
func (l *Lock) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%sversion = %d\n", lockHead, lockVersion)
	for _, twin := range slices.Sorted(maps.Keys(l.digests)) {
		if len(l.digests[twin]) == 0 {
			continue
		}
		table := "release"
		if twin != "" {
			table = "twin." + twin + ".release"
		}
		fmt.Fprintf(&b, "\n[%s]\n", table)
		for _, release := range slices.Sorted(maps.Keys(l.digests[twin])) {
			fmt.Fprintf(&b, "%d = %q\n", release, l.digests[twin][release])
		}
	}
	return b.Bytes()
}
