package sitefile

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// maxBases limits how many site files a site file extends, one after the other.
const maxBases = 4

// KeptBase is the directory in a copy of a site directory with a copy of the one that it extends. A restored
// site directory has it, too, and uses it unless it is where the other one is.
const KeptBase = ".extends"

// A level is a site directory and the name of its site file in messages, such as ../site.toml.
type level struct {
	dir  *directory
	file string
}

// label returns the name of a path of the directory in messages.
func (v level) label(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return path.Join(path.Dir(v.file), name)
}

// levels are the site directory and those that it extends, the nearest first.
type levels []level

// of returns the site directory whose site file has a value. The paths in the value are relative to it.
func (all levels) of(at *strict.Node) level {
	for _, one := range all {
		if at != nil && at.File == one.file {
			return one
		}
	}
	return all[0]
}

// label returns the name in messages of a path that a value of a site file names.
func (all levels) label(at *strict.Node, name string) string {
	if at == nil || at.File == "" {
		return name
	}
	return all.of(at).label(name)
}

// contain reports whether an absolute path is in one of the site directories.
func (all levels) contain(name string) bool {
	return slices.ContainsFunc(all, func(one level) bool {
		_, inside := one.dir.relPath(name)
		return inside
	})
}

// An extender reads the site files that a site file extends.
type extender struct{ *loader }

// extended returns the tables of the site file. If it extends another one, they are merged with the tables of
// that one, and each value has its position. It returns nil after a mistake without which the rest would
// only lead to more.
func (l extender) extended(content []byte) *strict.Node {
	var files []*strict.Node
	for file := Name; ; {
		root := l.parse(file, content)
		if root == nil {
			return nil
		}
		if file != Name {
			root.SetFile(file)
		}
		files = append(files, root)
		if root.Keys["extends"] == nil {
			break
		}
		base, p := l.nextBase(root.Keys["extends"].Value)
		if p != nil {
			l.report.addAt(file, root.Keys["extends"], p)
			return nil
		}
		l.chain = append(l.chain, base)
		file = base.file
		var err error
		if content, err = base.dir.read(Name, maxFile); err != nil {
			l.report.add(readProblem("it", err).At(file))
			return nil
		}
	}
	last := len(files) - 1
	if at := files[last].Keys["remove"]; at != nil {
		l.report.addAt(Name, at, mistake("remove: this site file extends no other one").
			Try(`delete the tables themselves, or write extends = ".."`))
	}
	root := files[last]
	for _, over := range slices.Backward(files[:last]) {
		l.ownName(over, files)
		l.removeFrom(root, over)
		l.base = root
		root = strict.Merge(root, over)
	}
	return root
}

// nextBase opens the directory that the last site file extends.
func (l extender) nextBase(value any) (level, *problem.Problem) {
	const example = `name the directory of the other site file: extends = ".."`
	last := l.chain[len(l.chain)-1]
	said, ok := value.(string)
	switch {
	case !ok:
		return level{}, mistake("extends must be a string, not %s", strict.Describe(value)).Try(example)
	case said == "" || filepath.IsAbs(said) || sanitize.Line(said) != said:
		return level{}, mistake("extends: %s is not a relative path", strict.Describe(said)).
			Try(example + ", so that it holds wherever the site directory is")
	case len(l.chain) > maxBases:
		return level{}, mistake("extends: more than %d site files extend one another", maxBases+1).
			Try("merge some of them")
	}
	next := level{file: path.Join(path.Dir(last.file), said, Name)}
	dir, p := last.dir.openBase(said, next.file)
	if p != nil {
		return level{}, p
	}
	last.dir.base, next.dir = dir, dir
	if dir.copied {
		return next, nil // it was checked when the copy was made
	}
	info, err := dir.tree.Stat(".")
	if err != nil {
		return level{}, readProblem(next.file, err)
	}
	for i, one := range l.chain {
		other, err := one.dir.tree.Stat(".")
		switch {
		case err != nil:
			return level{}, readProblem(one.file, err)
		case other.Dev == info.Dev && other.Ino == info.Ino:
			var files []string
			for _, again := range l.chain[i:] {
				files = append(files, again.file)
			}
			return level{}, mistake("extends: site files extend one another: %s",
				strings.Join(append(files, one.file), " → ")).Try("remove one extends")
		case other.Uid != info.Uid:
			return level{}, mistake("extends: the directory of %s belongs to another user than that of %s", next.file,
				one.file).Try("let both belong to the same user, or copy the other site file")
		}
	}
	return next, nil
}

// openBase opens the directory that the site file of a directory extends.
func (d *directory) openBase(said, file string) (*directory, *problem.Problem) {
	kept, err := d.openBaseAt(said, true)
	if d.copied {
		return kept, missingBase(file, err)
	}
	base, wrong := d.openBaseAt(said, false)
	switch {
	case err != nil:
		return base, missingBase(file, wrong)
	case errors.Is(wrong, fs.ErrNotExist):
		return kept, nil
	}
	defer kept.tree.Close()
	if wrong != nil {
		return nil, missingBase(file, wrong)
	}
	one, err := kept.tree.ReadFile(Name, maxFile)
	other, wrong := base.tree.ReadFile(Name, maxFile)
	if err == nil && wrong == nil && bytes.Equal(one, other) {
		return base, nil
	}
	base.tree.Close()
	return nil, mistake("extends: %s differs from what was restored in %s", file, KeptBase).
		Try("remove %s to use %s, or move this directory to use what was restored", KeptBase, file)
}

// openBaseAt opens the directory that the site file extends, or the copy of it.
func (d *directory) openBaseAt(said string, kept bool) (*directory, error) {
	base := &directory{path: filepath.Join(d.path, said), home: filepath.Join(d.home, said), copied: kept,
		kept: d.kept + KeptBase + "/", contents: d.contents}
	var err error
	if kept {
		base.path = filepath.Join(d.path, KeptBase)
		base.tree, err = d.tree.Sub(KeptBase)
	} else {
		base.tree, err = tree.OpenBeneath(base.path + "/.")
	}
	if err != nil {
		return nil, err
	}
	if _, err = base.tree.Lstat(Name); err != nil {
		base.tree.Close()
		return nil, err
	}
	return base, nil
}

// missingBase returns the problem that the other site file cannot be opened, or nil.
func missingBase(file string, err error) *problem.Problem {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return mistake("extends: %s does not exist", file).
			Try("correct the path: it is that of a directory, relative to this one")
	case errors.Is(err, unix.ENOTDIR):
		return mistake("extends: %s is not in a directory", file).Try("name the directory of the other site file")
	}
	return mistake("extends: %s cannot be read", file).Because(problem.PathErrorCause(err)).Try("make it readable")
}

// ownName checks that a site file that extends others names another site than they do. Otherwise, bringing
// up one of them would rebuild the nodes of the other. The id of a site is its own, too.
func (l extender) ownName(over *strict.Node, files []*strict.Node) {
	at, n := over.Find("site", "name")
	if n < 2 {
		l.report.addAt(Name, at, mistake("a site file that extends another needs a name of its own").
			Try(`write name = "lab" in [site]`))
		return
	}
	for _, base := range files[slices.Index(files, over)+1:] {
		if other, n := base.Find("site", "name"); n == 2 && other.Value == at.Value {
			l.report.addAt(Name, at, mistake("site %s has the name of the site that it extends (%s)",
				strict.Describe(at.Value), where(Name, other)).Try("choose another name"))
			return
		}
	}
}

// removeFrom removes from the tables of a base what does not count for a site file that extends it.
func (l extender) removeFrom(base, over *strict.Node) {
	for _, key := range []string{"extends", "remove"} {
		base.Remove(key)
	}
	base.Remove("site", "id")
	remove := over.Keys["remove"]
	if remove == nil {
		return
	}
	ranges := sync.OnceValue(func() map[string]string { return inRanges(base.Keys["node"]) })
	for _, item := range remove.Items {
		said, ok := item.Value.(string)
		if !ok {
			continue // the decoder reports it
		}
		path, ok := splitKey(said)
		if !ok {
			l.report.addAt(Name, item, mistake("remove: %s is not a key", strict.Describe(said)).
				Try(`write "node.portal", "backup" or "node.portal.net.cam", for example`))
		} else if !l.removeTable(base, path) && !l.removeNodes(ranges, path) {
			l.report.addAt(Name, item, mistake("remove: there is no %s to remove", problem.Truncate(said, 200)).
				Try("%s", nothingRemoved(base, path)))
		} else if len(path) == 2 {
			names, _ := expand(path[1], maxNodes)
			for _, name := range append(names, path[1]) {
				l.report.removed[name] = removal{path[0], where(Name, item)}
			}
		}
	}
}

// removeTable removes a table or another value.
func (l extender) removeTable(base *strict.Node, path []string) bool {
	if !base.Remove(path...) {
		return false
	}
	if path[0] == "node" && len(path) < 3 {
		maps.DeleteFunc(l.without, func(table string, _ map[string]bool) bool {
			return len(path) == 1 || table == path[1]
		})
	}
	return true
}

// removeNodes removes nodes from the ranges that declare them. It returns false if one of them is in none.
func (l extender) removeNodes(ranges func() map[string]string, path []string) bool {
	if len(path) != 2 || path[0] != "node" {
		return false
	}
	names, p := expand(path[1], maxNodes)
	if p != nil {
		return false
	}
	for _, name := range names {
		if table := ranges()[name]; table == "" || l.without[table][name] {
			return false
		}
	}
	for _, name := range names {
		table := ranges()[name]
		if l.without[table] == nil {
			l.without[table] = map[string]bool{}
		}
		l.without[table][name] = true
	}
	return true
}

// inRanges returns the table of each node that a range declares.
func inRanges(nodes *strict.Node) map[string]string {
	tables := map[string]string{}
	if nodes == nil {
		return tables
	}
	for _, key := range nodes.Order {
		if !strings.Contains(key, "{") {
			continue
		}
		names, p := expand(key, maxNodes-len(tables))
		if p != nil {
			return tables // which is reported where the table is
		}
		for _, name := range names {
			tables[name] = key
		}
	}
	return tables
}

// nothingRemoved returns the cure of a removal without effect.
func nothingRemoved(base *strict.Node, path []string) string {
	found, n := base.Find(path...)
	if nearest := problem.Suggest(path[n], found.Order); nearest != "" {
		return "did you mean " + strconv.Quote(strings.Join(append(slices.Clone(path[:n]), nearest), ".")) + "?"
	}
	return "remove this entry, or correct it"
}

// splitKey splits a dotted key into its parts. Parts may have quotation marks. A range such as
// receptor{00..63} does not need them.
func splitKey(key string) (parts []string, ok bool) {
	for {
		part, rest := "", ""
		if key != "" && (key[0] == '"' || key[0] == '\'') {
			end := strings.IndexByte(key[1:], key[0])
			if end < 0 {
				return nil, false
			}
			part, rest = key[1:end+1], key[end+2:]
		} else {
			end, braces := 0, 0
			for ; end < len(key) && (key[end] != '.' || braces > 0); end++ {
				switch key[end] {
				case '{':
					braces++
				case '}':
					braces--
				}
			}
			part, rest = key[:end], key[end:]
		}
		parts = append(parts, part)
		switch {
		case part == "" || len(parts) > maxNesting:
			return nil, false
		case rest == "":
			return parts, true
		case rest[0] != '.':
			return nil, false
		}
		key = rest[1:]
	}
}
