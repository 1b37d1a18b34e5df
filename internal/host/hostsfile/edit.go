package hostsfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// maxBytes limits the hosts file. Resolving names from a larger one would take noticeably long.
const maxBytes = 16 << 20

// maxAttempts limits how often an edit begins again because another program has changed the file.
const maxAttempts = 5

// errChanged means that another program has changed the file since it was read.
var errChanged = errors.New("another program keeps changing it")

// A version is the content of a file, and what identifies it.
type version struct {
	content []byte
	info    fs.FileInfo // nil if there is no file
}

// read returns the hosts file. It refuses anything that is not a regular file, because replacing it
// would remove a link that the administrator has made.
func (f File) read() (version, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return version{}, nil
	case errors.Is(err, unix.ELOOP):
		return version{}, f.unusable("it is a symbolic link")
	case err != nil:
		return version{}, err
	}
	defer file.Close()
	v := version{}
	if v.info, err = file.Stat(); err != nil {
		return v, err
	}
	if !v.info.Mode().IsRegular() {
		return v, f.unusable("it is not a regular file")
	}
	if v.content, err = io.ReadAll(io.LimitReader(file, maxBytes+1)); err != nil {
		return v, err
	}
	if len(v.content) > maxBytes {
		return v, f.unusable("it is larger than 16 MiB")
	}
	return v, nil
}

// edit replaces the blocks for which change returns true. It removes a block whose new text is empty,
// and adds missing blocks of the sites in add at the end.
func (f File) edit(change func(key string) (text []byte, changes bool), add ...string) error {
	for range maxAttempts {
		old, err := f.read()
		if err != nil {
			return err
		}
		parts, err := f.parse(old.content)
		if err != nil {
			return err
		}
		fresh := compose(parts, change, add)
		if bytes.Equal(fresh, old.content) {
			return nil
		}
		if err = f.replace(old, fresh); !errors.Is(err, errChanged) {
			return err
		}
	}
	return f.unwritable(errChanged)
}

// replace replaces the file atomically, with the same owner and mode. It returns errChanged if the file
// is no longer old.
func (f File) replace(old version, content []byte) error {
	mode, uid, gid := fs.FileMode(0o644), 0, 0
	if old.info != nil {
		mode = old.info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
		if of, ok := old.info.Sys().(*syscall.Stat_t); ok {
			uid, gid = int(of.Uid), int(of.Gid)
		}
	}
	pending, err := renameio.NewPendingFile(f.Path, renameio.WithTempDir(filepath.Dir(f.Path)),
		renameio.WithPermissions(mode), renameio.IgnoreUmask())
	if err != nil {
		return f.unwritable(err)
	}
	defer pending.Cleanup() //nolint:errcheck // after success there is nothing to clean up
	if os.Geteuid() == 0 {
		if err := pending.Chown(uid, gid); err != nil {
			return f.unwritable(err)
		}
	}
	if _, err := pending.Write(content); err != nil {
		return f.unwritable(err)
	}
	if !f.is(old) {
		return errChanged
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return f.unwritable(err)
	}
	return nil
}

// is reports whether the file is still the one that was read.
func (f File) is(old version) bool {
	now, err := os.Lstat(f.Path)
	if old.info == nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && os.SameFile(old.info, now) && now.Size() == old.info.Size() &&
		now.ModTime().Equal(old.info.ModTime())
}

func (f File) unusable(why string) error {
	return problem.New(problem.Unable, "the names of nodes cannot be kept in %s: %s", f.Path, why).
		Try("orrery names --uninstall stops that")
}

func (f File) unwritable(err error) error {
	return problem.New(problem.Failed, "the names of nodes cannot be written to %s", f.Path).Because(err).
		Try("orrery names --uninstall, or rm %s, stops that", f.Marker())
}

// The first and the last line of a block are these, each followed by the key of the site.
const (
	first = "# BEGIN orrery "
	last  = "# END orrery "
)

// A part of the file is the block of a site, or lines of others.
type part struct {
	key  string // of the site, or "" for lines of others
	text string // including the first and the last line of a block
}

// lines returns the lines between the first and the last line of a block.
func (p part) lines() []byte {
	lines := slices.Collect(strings.Lines(p.text))
	return []byte(strings.Join(lines[1:len(lines)-1], ""))
}

// parse splits the file into blocks and lines of others.
func (f File) parse(content []byte) (parts []part, err error) {
	var block strings.Builder
	began, key, n := 0, "", 0
	for line := range strings.Lines(string(content)) {
		n++
		word := strings.TrimRight(line, " \t\r\n")
		of, begins := strings.CutPrefix(word, first)
		switch {
		case begins && key != "":
			return nil, f.unended(key, began)
		case begins:
			key, began = of, n
			block.WriteString(line)
		case key != "" && word == last+key:
			block.WriteString(line)
			parts = append(parts, part{key, block.String()})
			block.Reset()
			key = ""
		case key != "":
			block.WriteString(line)
		default:
			parts = append(parts, part{text: line})
		}
	}
	if key != "" {
		return nil, f.unended(key, began)
	}
	return parts, nil
}

func (f File) unended(key string, line int) error {
	return problem.New(problem.Unable, "the block of site %q has no last line", key).
		At(fmt.Sprintf("%s:%d", f.Path, line)).
		Try("remove the block's lines, from %q on", first+key)
}

// compose joins the parts of the file.
func compose(parts []part, change func(string) ([]byte, bool), add []string) []byte {
	var b bytes.Buffer
	written := map[string]bool{}
	block := func(key string, text []byte) {
		if len(text) == 0 || written[key] {
			return
		}
		written[key] = true
		b.WriteString(first + key + "\n")
		b.Write(text)
		b.WriteString(last + key + "\n")
	}
	for _, p := range parts {
		if p.key == "" {
			b.WriteString(p.text)
			continue
		}
		if text, changes := change(p.key); changes {
			block(p.key, text)
		} else {
			b.WriteString(p.text)
		}
	}
	for _, key := range add {
		text, _ := change(key)
		if len(text) > 0 && !written[key] && b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
			b.WriteByte('\n')
		}
		block(key, text)
	}
	return b.Bytes()
}
