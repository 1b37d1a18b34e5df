package vault

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Open opens an archive, a repository, or one backup in a repository as DIR@ID. The id is "" if
// text does not contain one.
func Open(text string) (v Vault, id string, err error) {
	path := text
	if at := strings.LastIndex(text, "@"); !tree.Exists(text) && at > 0 {
		path, id = text[:at], text[at+1:]
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", problem.New(problem.Usage, "no backup found").At(path).Because(problem.PathErrorCause(err)).
			Try("name the file or directory that orrery backup wrote; one of several backups is DIRECTORY@ID")
	}
	if info.IsDir() {
		v, err = OpenRepository(path)
	} else {
		v, err = OpenArchive(path)
	}
	return v, id, err
}

// Write opens an archive or repository for a new backup. An existing directory or a name that ends
// with "/" is a repository, everything else an archive.
func Write(text string) (Vault, error) {
	if text == "" {
		return nil, problem.New(problem.Usage, "the backup has no name").Try("name a file or directory")
	}
	if info, err := os.Stat(text); err == nil && info.IsDir() || strings.HasSuffix(text, "/") {
		return vaultOf(WriteRepository(filepath.Clean(text)))
	}
	return vaultOf(WriteArchive(text))
}

// vaultOf prevents a nil pointer from becoming a Vault that is not nil.
func vaultOf[V interface {
	comparable
	Vault
}](v V, err error) (Vault, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// OpenOne opens the file or directory that a user named, and finds the backup in it that the user
// means. The caller closes the vault.
func OpenOne(text string) (v Vault, id string, m *Manifest, err error) {
	if v, id, err = Open(text); err != nil {
		return nil, "", nil, err
	}
	if id, m, err = Resolve(v, id); err != nil {
		v.Close() //nolint:errcheck // it was only read
		return nil, "", nil, err
	}
	return v, id, m, nil
}

// Resolve finds the backup with an ID, of which the user may give only the beginning. If id is "",
// it returns the latest backup if all are of one site.
func Resolve(v Vault, id string) (string, *Manifest, error) {
	ids, err := v.Backups()
	if err != nil {
		return "", nil, err
	}
	if len(ids) == 0 {
		return "", nil, problem.New(problem.Usage, "this directory contains no backups yet").At(v.Where()).
			Try("make one with orrery backup %s", v.Where())
	}
	if id == "" {
		return latest(v, ids)
	}
	found := slices.DeleteFunc(slices.Clone(ids), func(s string) bool { return !strings.HasPrefix(s, id) })
	if len(found) != 1 {
		p := problem.New(problem.Usage, "%d backups begin with %s", len(found), id).At(v.Where())
		return "", nil, p.Try("list the backups with orrery backup ls %s", v.Where())
	}
	m, err := v.Manifest(found[0])
	return found[0], m, err
}

func latest(v Vault, ids []string) (string, *Manifest, error) {
	id := ids[len(ids)-1]
	m, err := v.Manifest(id)
	if err != nil {
		return "", nil, err
	}
	for _, other := range ids {
		if o, err := v.Manifest(other); err == nil && o.Key != m.Key {
			return "", nil, problem.New(problem.Usage, "it contains backups of several sites: %s, %s", o.Key, m.Key).
				At(v.Where()).Try("name one: %s@%s is the latest of %s", v.Where(), id, m.Key)
		}
	}
	return id, m, nil
}

// Title returns the name of a backup for the user.
func Title(v Vault, id string) string {
	if _, one := v.(*Archive); one {
		return v.Where()
	}
	return v.Where() + "@" + id
}
