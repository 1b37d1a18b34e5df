// Package rolefetch fetches the git repositories that a site file names in roles_path.
//
// A site directory and a repository may come from strangers. The user's git only downloads objects into
// a bare repository, and never checks them out: no hook, filter, submodule or configuration of the
// repository has an effect. Files are then read by the id of the commit, which determines their content.
package rolefetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/tree"
)

// Limits of a repository at one commit.
const (
	maxFiles = 10_000
	maxDepth = 32
	maxList  = 4 << 20 // bytes of the list of files
	// maxObjects limits the size of each file that git writes, in units of 512 bytes.
	maxObjects = 256 << 20 / 512
)

var (
	// variables, so that tests can change them
	maxBytes     int64 = 64 << 20 // of all files
	fetchTimeout       = 5 * time.Minute
	protocols          = "https:ssh"
)

// Fetched is a repository that was fetched.
type Fetched struct {
	URL, Commit string
	Files       int
	Skipped     int // links and submodules
}

// Fetch fetches the repositories of a site directory that it does not store yet. It calls say before each.
func Fetch(ctx context.Context, dir string, say func(string)) (all []Fetched, err error) {
	repositories, err := sitefile.Repositories(dir)
	if err != nil {
		return nil, err
	}
	for i := range repositories {
		r := &repositories[i]
		root, err := tree.Open(r.Site)
		if err != nil {
			return all, problem.PathErrorCause(err)
		}
		defer root.Close() //nolint:errcheck // files are written by Put
		if tree.Exists(filepath.Join(r.Site, sitefile.FetchedRoles, r.Commit)) {
			continue
		}
		say(fmt.Sprintf("fetching commit %s of %s", r.Commit, r.URL))
		one, err := fetch(ctx, r, root)
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// fetch fetches a repository and stores its files in the site directory.
func fetch(ctx context.Context, r *sitefile.Repository, to *tree.Root) (done Fetched, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	st, err := to.Stat(".")
	if err != nil {
		return done, err
	}
	g, err := newBare(st)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, tree.RemoveAll(g.dir)) }()
	if err := g.download(ctx, r); err != nil {
		return done, err
	}
	files, skipped, err := g.list(ctx, r)
	if err != nil {
		return done, err
	}
	store := &storage{root: to, uid: os.Geteuid(), gid: os.Getegid(), commit: r.Commit}
	if store.uid == 0 {
		store.uid, store.gid = int(st.Uid), int(st.Gid)
	}
	if err = store.begin(); err == nil {
		err = g.read(ctx, files, store.put)
	}
	if err == nil {
		err = store.finish()
	}
	if err != nil {
		_ = store.drop() // ignore the error: the next fetch begins with it
		return done, store.failed(err)
	}
	return Fetched{r.URL, r.Commit, len(files), skipped}, nil
}

// A bare is an empty bare repository in a temporary directory.
type bare struct {
	dir  string
	user string // that owns the site directory, or "" for the caller
	home string
}

// newBare returns a repository of the user who owns the site directory. If root fetches for another user,
// git has that user's configuration and logins, and not root's.
func newBare(st *unix.Stat_t) (*bare, error) {
	g := &bare{}
	if os.Geteuid() == 0 && st.Uid != 0 {
		owner, err := user.LookupId(strconv.FormatUint(uint64(st.Uid), 10))
		if err != nil {
			return nil, problem.New(problem.Unable, "the owner of the site directory is unknown: user id %d", st.Uid).
				Try("run the command as the user who owns it")
		}
		g.user, g.home = owner.Username, owner.HomeDir
	}
	dir, err := os.MkdirTemp("", "orrery-roles-")
	if err == nil && g.user != "" {
		err = os.Chown(dir, int(st.Uid), int(st.Gid))
	}
	if err != nil {
		_ = os.Remove(dir) // ignore the error: it may not exist
		return nil, err
	}
	g.dir = dir
	return g, nil
}

// git runs git.
func (g *bare) git(ctx context.Context, args ...string) error {
	return host.Local{Name: "git"}.Run(ctx, g.command(args...))
}

// output runs git and returns what it prints, which is at most most bytes.
func (g *bare) output(ctx context.Context, in io.Reader, most int, args ...string) ([]byte, error) {
	c := g.command(args...)
	c.Stdin = in
	return host.Output(ctx, host.Local{Name: "git"}, c, most)
}

// command returns a command that runs git. Nothing of the environment leads to another repository. The
// environment of root, which may have secrets, is not that of another user's git.
func (g *bare) command(args ...string) host.Command {
	as := []string{"env", "-u", "GIT_OBJECT_DIRECTORY", "-u", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "-u", "GIT_INDEX_FILE",
		"-u", "GIT_WORK_TREE", "-u", "GIT_NAMESPACE"}
	if g.user != "" {
		as = []string{"env", "-i", "PATH=" + host.Path, "HOME=" + g.home}
		for _, name := range []string{"http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE"} {
			if value, ok := os.LookupEnv(name); ok {
				as = append(as, name+"="+value)
			}
		}
	}
	as = append(as, "GIT_ALLOW_PROTOCOL="+protocols, "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")
	if g.user != "" {
		as = append(as, "runuser", "-u", g.user, "--")
	}
	as = append(as, "sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, maxObjects), "sh",
		"git", "--git-dir="+g.dir, "-c", "core.hooksPath=/dev/null", "-c", "transfer.fsckObjects=true",
		"-c", "fetch.recurseSubmodules=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
	return host.Command{Args: append(as, args...)}
}

// download fetches the objects of the commit. If the server does not send single commits, it fetches all
// branches and tags.
func (g *bare) download(ctx context.Context, r *sitefile.Repository) error {
	err := g.git(ctx, "init", "--quiet", "--bare", "--template=")
	if err == nil {
		err = g.git(ctx, "fetch", "--quiet", "--no-tags", "--depth=1", "--", r.URL, r.Commit)
	}
	if err != nil && ctx.Err() == nil {
		err = g.git(ctx, "fetch", "--quiet", "--", r.URL, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return problem.New(problem.Failed, "%s was not fetched within %s", r.URL, fetchTimeout).
			Try("try again; use a smaller repository for roles")
	case ctx.Err() != nil:
		return problem.New(problem.Interrupted, "interrupted; nothing was stored").At(r.URL)
	case err != nil:
		return problem.New(problem.Failed, "%s cannot be fetched", r.URL).Because(err).
			Try("check that git ls-remote %s works for the user who owns the site directory", r.URL)
	}
	if g.git(ctx, "cat-file", "-e", r.Commit+"^{commit}") != nil {
		return problem.New(problem.Mistake, "%s has no commit %s", r.URL, r.Commit).At(sitefile.Name).
			Try("correct the commit in roles_path: git ls-remote prints those of branches and tags")
	}
	return nil
}

// A blob is a file of the commit.
type blob struct {
	path, id string
	mode     uint32
	size     int64
}

// list returns the files of a commit, and how many other entries it has.
func (g *bare) list(ctx context.Context, r *sitefile.Repository) (files []blob, skipped int, err error) {
	out, err := g.output(ctx, nil, maxList, "ls-tree", "-r", "-l", "-z", "--full-tree", r.Commit)
	if over := (*host.OutputLimitError)(nil); errors.As(err, &over) {
		return nil, 0, tooLarge(r)
	} else if err != nil {
		return nil, 0, err
	}
	total := int64(0)
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		meta, name, _ := strings.Cut(entry, "\t")
		words := strings.Fields(meta) // mode, type, id, size
		if len(words) != 4 || !tree.ValidPath(name) || strings.Count(name, "/") >= maxDepth {
			return nil, 0, problem.New(problem.Mistake, "commit %s of %s has a file with an invalid name: %q", r.Commit, r.URL,
				problem.Truncate(name, 200)).Try("rename it there, and use the new commit")
		}
		size, err := strconv.ParseInt(words[3], 10, 64)
		mode := uint32(0o644)
		switch {
		case words[0] == "100755":
			mode = 0o755
		case words[0] != "100644" && words[0] != "100664" || err != nil:
			skipped++
			continue
		}
		total += size
		if files = append(files, blob{name, words[2], mode, size}); total > maxBytes || len(files) > maxFiles {
			return nil, 0, tooLarge(r)
		}
	}
	return files, skipped, nil
}

func tooLarge(r *sitefile.Repository) error {
	return problem.New(problem.Mistake, "commit %s of %s has more than %d files or %d MiB", r.Commit, r.URL, maxFiles,
		maxBytes>>20).Try("use a smaller repository for roles")
}

// read reads the files and calls put for each. Git prints each as it is in the repository.
func (g *bare) read(ctx context.Context, files []blob, put func(f blob, content []byte) error) error {
	var ids strings.Builder
	limit := int64(0)
	for _, f := range files {
		ids.WriteString(f.id + "\n")
		limit += f.size + 100
	}
	rest, err := g.output(ctx, strings.NewReader(ids.String()), int(limit), "cat-file", "--batch")
	if err != nil {
		return err
	}
	for _, f := range files {
		head := fmt.Appendf(nil, "%s blob %d\n", f.id, f.size)
		if !bytes.HasPrefix(rest, head) || int64(len(rest)) < int64(len(head))+f.size+1 {
			return fmt.Errorf("git did not print %s", f.path)
		}
		rest = rest[len(head):]
		if err := put(f, rest[:f.size]); err != nil {
			return err
		}
		rest = rest[f.size+1:]
	}
	return nil
}

// A storage is the place of a commit in a site directory, under a temporary name until it is complete.
type storage struct {
	root     *tree.Root
	uid, gid int
	commit   string
}

func (s *storage) fresh() string { return path.Join(sitefile.FetchedRoles, "."+s.commit+".new") }

// begin creates an empty directory. Version control ignores what is fetched.
func (s *storage) begin() error {
	if err := s.drop(); err != nil {
		return err
	}
	if err := s.root.MkdirAll(s.fresh(), s.uid, s.gid); err != nil {
		return err
	}
	return s.root.Put(tree.File{Path: path.Join(sitefile.FetchedRoles, ".gitignore"), Content: []byte("*\n"), Uid: s.uid,
		Gid: s.gid, Mode: 0o644}, s.uid, s.gid)
}

func (s *storage) put(f blob, content []byte) error {
	file := tree.File{Path: path.Join(s.fresh(), f.path), Content: content, Uid: s.uid, Gid: s.gid, Mode: f.mode}
	return s.root.Put(file, s.uid, s.gid)
}

// finish renames the directory, which is complete.
func (s *storage) finish() error {
	within, err := s.root.Sub(sitefile.FetchedRoles)
	if err != nil {
		return err
	}
	defer within.Close()
	return unix.Renameat(within.Fd(), path.Base(s.fresh()), within.Fd(), s.commit)
}

// drop removes an incomplete directory.
func (s *storage) drop() error {
	if _, err := s.root.Lstat(s.fresh()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return s.root.RemoveAll(s.fresh())
}

func (s *storage) failed(err error) error {
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return err
	}
	return problem.New(problem.Unable, "the roles cannot be stored").At(path.Join(s.root.Name(), sitefile.FetchedRoles)).
		Because(problem.PathErrorCause(err)).Try("make the site directory writable")
}
