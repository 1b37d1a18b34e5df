package sitefile

import (
	"path"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
	"orrery/internal/tree"
)

// FetchedRoles is the directory in a site directory with the fetched git repositories of its roles_path.
// Each has a directory named by its commit.
const FetchedRoles = ".fetched_roles"

// A Repository is a git repository in roles_path, at one commit. Its content never changes, so it is
// fetched once.
type Repository struct {
	Site   string // absolute path of the site directory that names it, and stores its content
	URL    string
	Commit string // 40 hexadecimal digits
	Stored bool

	within string // directory of the roles in the repository
}

// gitAddress matches git+https://HOST/PATH@COMMIT or git+ssh://USER@HOST/PATH@COMMIT, with or without
// #DIRECTORY. It allows no password and no host that ssh would read as an option.
var gitAddress = pattern.New(`^git\+((?:https|ssh)://(?:[A-Za-z0-9][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?` +
	`/[A-Za-z0-9._~%/+-]+)@([0-9a-f]{40})(?:#([A-Za-z0-9._/-]+))?$`)

// isRepository reports whether an entry of roles_path is the address of a repository.
func isRepository(entry string) bool { return strings.HasPrefix(entry, "git+") }

func parseRepository(entry string) (r Repository, p *problem.Problem) {
	const example = `write "git+https://git.example.org/roles.git@COMMIT" with the 40 digits of a commit, and "#DIRECTORY" ` +
		`if the roles are not at the top`
	shown := strict.Describe(entry)
	m := gitAddress().FindStringSubmatch(entry)
	switch {
	case password().MatchString(entry):
		return r, mistake("roles_path: an address has a password").
			Try("remove it, and make a new one: it is under version control; git help credentials says how git gets one")
	case m != nil && (m[3] == "" || tree.ValidPath(path.Clean(m[3]))):
		return Repository{URL: m[1], Commit: m[2], within: path.Clean(m[3])}, nil
	case m != nil:
		return r, mistake("roles_path: the directory in %s is not in the repository", shown).Try(example)
	case !strings.HasPrefix(entry, "git+https://") && !strings.HasPrefix(entry, "git+ssh://"):
		return r, mistake("roles_path: %s is reached neither by HTTPS nor by SSH", shown).Try(example)
	case !commitAtEnd().MatchString(entry):
		return r, mistake("roles_path: %s names no commit", shown).
			Try(example + "; git ls-remote prints the commits of branches and tags, which may move")
	}
	return r, mistake("roles_path: %s is not the address of a git repository", shown).Try(example)
}

var (
	commitAtEnd = pattern.New(`@[0-9a-f]{40}(#.*)?$`)
	password    = pattern.New(`://[^/@]*:[^/@]*@`)
)

// Repositories returns the git repositories in the roles_path of a site directory. The other mistakes of the
// site do not matter, because roles that are not fetched yet are some of them.
func Repositories(dir string) ([]Repository, error) {
	d, err := open(dir, dir)
	if err != nil {
		return nil, err
	}
	defer d.close()
	l, err := d.loaded(dir)
	if l == nil || len(l.repositories) == 0 {
		return nil, err
	}
	return l.repositories, nil
}
