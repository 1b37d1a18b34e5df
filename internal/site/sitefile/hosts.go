package sitefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// An Edit is a site file with one host added or removed, not yet written.
type Edit struct {
	Site  *site.Site // the site after the edit
	Block string     // text that is added or removed

	dir      string
	was, now []byte
	by       string // why the file cannot be changed automatically, or ""
}

// localHost declares the host that a site has by default.
const localHost = "[host.local]\naddress = \"local\"\n"

// AddHost returns the site file of a directory with one host added. All other text stays unchanged,
// byte for byte. If that is impossible, Write returns an error, and the user can insert Block by
// hand.
func AddHost(dir, name, address string) (*Edit, error) {
	e, l, err := openEdit(dir)
	if err != nil {
		return nil, err
	}
	old := l.site
	e.Block = fmt.Sprintf("[host.%s]\naddress = %q\n", name, address)
	if !hostWord().MatchString(name) { // otherwise package check reports a mistake
		e.Block = fmt.Sprintf("[host.%q]\naddress = %q\n", name, address)
	}
	want := append(slices.Clone(old.Hosts), site.Host{Name: name, Address: address})
	if len(l.file.Hosts) == 0 {
		// a site that declares no host has this machine, so it must now be declared
		e.Block = localHost + "\n" + e.Block
	}
	e.now = insertBlock(e.was, e.Block)
	return e, e.verify(old, want)
}

// RemoveHost returns the site file of a directory with one host removed. If a site file that it extends
// declares the host, that one stays unchanged, and the host is listed in remove.
func RemoveHost(dir, name string) (*Edit, error) {
	e, l, err := openEdit(dir)
	if err != nil {
		return nil, err
	}
	want := slices.DeleteFunc(slices.Clone(l.site.Hosts), func(h site.Host) bool { return h.Name == name })
	e.now, e.Block = cutHost(e.was, name)
	if l.base != nil {
		if at, n := l.base.Find("host", name); n == 2 {
			var ok bool
			if e.now, ok = addRemoval(e.now, "host."+name); !ok {
				return nil, problem.New(problem.Unable, "host %s is declared in %s, which this site file extends", name,
					where(Name, at)).At(filepath.Join(e.dir, Name)).
					Try("begin the lines with extends = and remove = with these words")
			}
		}
	}
	return e, e.verify(l.site, want)
}

// Patterns for the lines of a site file that extends another.
var (
	extendsLine = pattern.New(`(?m)^extends[ \t]*=.*$`)
	removeStart = pattern.New(`(?m)^remove[ \t]*=[ \t]*\[`)
)

// addRemoval returns a site file that extends another with one more key in its list remove. It returns
// false if it does not find where to write.
func addRemoval(text []byte, key string) ([]byte, bool) {
	if at := removeStart().FindIndex(text); at != nil {
		return slices.Concat(text[:at[1]], []byte(fmt.Sprintf("%q, ", key)), text[at[1]:]), true
	}
	at := extendsLine().FindIndex(text)
	if at == nil {
		return nil, false
	}
	line := fmt.Sprintf("remove = [%q]", key)
	if bytes.HasSuffix(text[:at[1]], []byte("\r")) {
		return slices.Concat(text[:at[1]], []byte("\n"+line+"\r"), text[at[1]:]), true
	}
	return slices.Concat(text[:at[1]], []byte("\n"+line), text[at[1]:]), true
}

var hostWord = pattern.New(`^[A-Za-z0-9_-]+$`)

// openEdit returns an edit without a change, and the loader that has read the directory.
func openEdit(dir string) (*Edit, *loader, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	d, err := open(at, at)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	l, err := d.loaded(at)
	if err != nil {
		return nil, nil, err
	}
	return &Edit{dir: at, was: d.files[Name]}, l, nil
}

// verify loads the site with the edited file. Only its hosts may differ from the old site. Otherwise
// the edit misunderstood the file, and Write will not change it.
func (e *Edit) verify(old *site.Site, hosts []site.Host) error {
	d, err := openDirectory(e.dir, e.dir)
	if err != nil {
		return err
	}
	defer d.close()
	d.files[Name] = e.now
	s, err := d.load(e.dir)
	if err != nil {
		return err
	}
	e.Site = s
	byName := func(a, b site.Host) int { return strings.Compare(a.Name, b.Name) }
	if !slices.Equal(slices.SortedFunc(slices.Values(s.Hosts), byName), slices.SortedFunc(slices.Values(hosts), byName)) {
		e.by = "its hosts are not separate tables"
		return nil
	}
	if !reflect.DeepEqual(withoutHosts(s, old), withoutHosts(old, s)) {
		e.by = "other settings would change too (give each host a number, if nodes are per host)"
	}
	return nil
}

// withoutHosts returns a site without its hosts and the nodes that come and go with them, to compare it
// with other. A node without a declared host is on the only host if there is exactly one. This difference
// is ignored.
func withoutHosts(s, other *site.Site) site.Site {
	rest := *s
	rest.Hosts, rest.Nodes = nil, nodesOfBoth(s, other)
	theirs := nodesOfBoth(other, s)
	for i := range min(len(rest.Nodes), len(theirs)) {
		if theirs[i].Host == "" && len(s.Hosts) == 1 {
			rest.Nodes[i].Host = ""
		}
	}
	rest.Networks = slices.Clone(s.Networks)
	for i := range rest.Networks {
		rest.Networks[i].Place = "" // an edit moves lines
	}
	kept := rest.NodesByName()
	rest.Groups = slices.Clone(s.Groups)
	for i := range rest.Groups {
		rest.Groups[i].Nodes = slices.DeleteFunc(slices.Clone(rest.Groups[i].Nodes), func(name string) bool {
			return kept[name] == nil
		})
	}
	return rest
}

// nodesOfBoth returns the nodes of a site, without those that hosts which other does not have bring along.
func nodesOfBoth(s, other *site.Site) []site.Node {
	return slices.DeleteFunc(slices.Clone(s.Nodes), func(n site.Node) bool {
		return n.PerHost != "" && !slices.ContainsFunc(other.Hosts, func(h site.Host) bool { return h.Name == n.Host })
	})
}

// Write replaces the site file atomically and keeps its owner and mode. If it returns an error, the
// file is unchanged.
func (e *Edit) Write() error {
	cannot := func(err error) error {
		return problem.New(problem.Unable, "the site file cannot be edited").At(filepath.Join(e.dir, Name)).
			Because(err).Try("edit it by hand")
	}
	if e.by != "" {
		return cannot(errors.New(e.by))
	}
	d, err := openDirectory(e.dir, e.dir)
	if err != nil {
		return cannot(problem.PathErrorCause(err))
	}
	defer d.close()
	st, err := d.tree.Lstat(Name)
	if err != nil {
		return cannot(problem.PathErrorCause(err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return cannot(errors.New("it is a symbolic link"))
	}
	if now, err := d.read(Name, maxFile); err != nil || !bytes.Equal(now, e.was) {
		return problem.New(problem.Surprise, "the site file was changed at the same time").At(filepath.Join(e.dir,
			Name)).
			Try("run the command again")
	}
	if err := replace(d.tree.Fd(), Name, st, e.now); err != nil {
		return cannot(problem.PathErrorCause(err))
	}
	return nil
}

// replace atomically replaces a file of a site directory, with the given owner and mode. It never
// writes to a file that another user created.
func replace(dir int, name string, st *unix.Stat_t, text []byte) error {
	fresh := "." + name + ".new"
	// left by a killed process
	if err := unix.Unlinkat(dir, fresh, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fd, err := unix.Openat(dir, fresh, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), fresh)
	_, err = f.Write(text)
	if err == nil && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		err = f.Chown(int(st.Uid), int(st.Gid))
	}
	if err == nil {
		err = f.Chmod(fs.FileMode(st.Mode & 0o777))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = unix.Renameat(dir, fresh, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, fresh, 0)
	}
	return err
}

// Patterns for table headers, and for keys of hosts outside of a host's table.
var (
	anyHeader  = pattern.New(`^\s*\[`)
	hostHeader = pattern.New(`^\s*\[\s*host\s*\.\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*\]\s*(?:#.*)?\r?\n?$`)
	hostKey    = pattern.New(`^\s*host\s*\.\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*\.`)
)

// hostOf returns the host that a line declares, or "" if it declares none.
func hostOf(line []byte, by *regexp.Regexp) string {
	m := by.FindSubmatch(line)
	if m == nil {
		return ""
	}
	return string(bytes.Join(m[1:], nil))
}

// hostSections returns the lines of a file. For each host's table it also returns the range of its
// lines, without trailing blank lines and comments.
func hostSections(text []byte) (lines [][]byte, all map[string][2]int) {
	lines, all = bytes.SplitAfter(text, []byte("\n")), map[string][2]int{}
	for i, line := range lines {
		name := hostOf(line, hostHeader())
		if name == "" {
			continue
		}
		end := i + 1
		for k := i + 1; k < len(lines) && !anyHeader().Match(lines[k]); k++ {
			if said := bytes.TrimSpace(lines[k]); len(said) > 0 && said[0] != '#' {
				end = k + 1
			}
		}
		all[name] = [2]int{i, end}
	}
	return lines, all
}

// insertBlock returns the file with the block inserted after the tables of its hosts, or at its end.
func insertBlock(text []byte, block string) []byte {
	lines, all := hostSections(text)
	at := 0
	for _, section := range all {
		at = max(at, section[1])
	}
	if at == 0 {
		at = len(lines)
	}
	before, after := bytes.Join(lines[:at], nil), bytes.Join(lines[at:], nil)
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		block = newline + block
	}
	if len(before) > 0 && !bytes.HasSuffix(before, []byte(newline+newline)) {
		block = "\n" + block
	}
	block = strings.ReplaceAll(strings.ReplaceAll(block, "\r\n", "\n"), "\n", newline)
	return slices.Concat(before, []byte(block), after)
}

// cutHost returns the file with everything about a host removed, and the removed text.
func cutHost(text []byte, name string) ([]byte, string) {
	lines, all := hostSections(text)
	var rest [][]byte
	gone := ""
	section, ok := all[name]
	for i, line := range lines {
		switch {
		case ok && section[0] <= i && i < section[1]:
			gone += string(line)
		case ok && i == section[1] && len(bytes.TrimSpace(line)) == 0 &&
			(section[0] == 0 || len(bytes.TrimSpace(lines[section[0]-1])) == 0):
			// remove one of the two blank lines around the table
		case hostOf(line, hostKey()) == name:
			gone += string(line)
		default:
			rest = append(rest, line)
		}
	}
	return bytes.Join(rest, nil), gone
}
