package backup

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"

	"filippo.io/age"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/tree"
)

// A SiteDir is the site directory in a backup, and its place on this machine.
type SiteDir struct {
	From     vault.Vault
	Manifest *vault.Manifest
	Path     string
}

// Stage stages the site directory beside its place, unless something is there, and returns the
// directory that can be read. Place then moves it as a whole. Until then it is not in its place,
// because any process that finds it there may bring the site up.
func (s *SiteDir) Stage(ctx context.Context) (at string, err error) {
	t, ok := s.Manifest.Tree("site")
	if !ok || tree.Exists(s.Path) && !empty(s.Path) {
		return s.Path, nil
	}
	aside := stagingPath(s.Path)
	n, err := spaceNeededAt(map[uint64]*spaceNeeded{}, aside)
	if err == nil {
		n.Size, err = SizeOf(ctx, vault.NewPieces(s.From), t)
	}
	base, extends := s.Manifest.Tree(vault.ExtendedTree)
	if extends && err == nil {
		var more Size
		more, err = SizeOf(ctx, vault.NewPieces(s.From), base)
		n.Bytes, n.Paths = min(n.Bytes, math.MaxInt64-more.Bytes)+more.Bytes, n.Paths+more.Paths
	}
	if err == nil {
		err = n.check()
	}
	if err != nil {
		return "", err
	}
	// The other tree is complete before it comes into the site directory, to which the directory's owner may
	// write.
	other := aside + "-extended"
	for _, left := range []string{aside, other} {
		if err := tree.RemoveAll(left); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Dir(aside), 0o755); err != nil {
		return "", err
	}
	if extends {
		err = ExtractTree(ctx, s.From, base, other)
	}
	if err == nil {
		err = ExtractTree(ctx, s.From, t, aside)
	}
	if extends && err == nil {
		err = move{From: other, To: filepath.Join(aside, sitefile.KeptBase)}.apply(false)
	}
	if err != nil {
		_ = tree.RemoveAll(other) // ignore the error: the next restore begins with it
		return "", errors.Join(err, tree.RemoveAll(aside))
	}
	return aside, nil
}

// Place moves the staged site directory to its place.
func (s *SiteDir) Place() error { return move{From: stagingPath(s.Path), To: s.Path}.apply(false) }

// Check returns an error unless the site directory is missing, empty, or has the same files as the
// backup.
func (s *SiteDir) Check(ctx context.Context) error {
	if !tree.Exists(s.Path) || empty(s.Path) {
		return nil
	}
	for i := range s.Manifest.Trees {
		t := &s.Manifest.Trees[i]
		if t.Kind != vault.SiteTree {
			continue
		}
		why, err := firstDifference(ctx, vault.NewPieces(s.From), t, s.Path)
		if err != nil {
			return err
		}
		if why != "" {
			return problem.New(problem.Usage,
				"the site directory is not empty and differs from the backup: %s", why).
				At(s.Path).Try("name another directory with --dir")
		}
	}
	return nil
}

// ExtractTree extracts a tree into a new directory.
func ExtractTree(ctx context.Context, from vault.Vault, t *vault.Tree, dir string) error {
	return stageTree(ctx, vault.NewPieces(from), t, dir, noted, func(string) {})
}

// OpenSecrets decrypts the secrets in a backup. It returns nil if with is empty.
func OpenSecrets(from vault.Vault, m *vault.Manifest, with []age.Identity) (vault.Secrets, error) {
	if len(with) == 0 {
		return nil, nil
	}
	if m.Secrets == nil {
		return nil, problem.New(problem.Usage, "this backup contains no secrets").At(from.Where()).
			Try("omit the key or passphrase")
	}
	all, err := vault.Unseal(vault.NewPieces(from).Stream(m.Secrets.Pieces), with)
	if err != nil {
		return nil, problem.New(problem.Refused,
			"the secrets cannot be decrypted with this key or passphrase; nothing was done").At(from.Where()).Because(err).
			Try("use the one that the backup was made with")
	}
	return all, nil
}
