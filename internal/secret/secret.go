// Package secret fetches the values of secrets and hides them in output. The values exist only in
// memory and on the host's tmpfs, never in a layer, a plan, a journal or a log.
package secret

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

// A Keyring has the secrets of a site during one run. It fetches each secret once, when it is first
// needed.
type Keyring struct {
	sites  []*site.Site // sites that may declare a secret; the first one with the name wins
	dirs   host.Dirs
	mu     sync.Mutex
	values map[string]string // by the name under which hosts store them
	stored map[string]Stored // generated secrets, by the same

	// Find returns a generated secret of a node, or of all nodes if node is "". If Find is nil,
	// generated secrets are stored in the state directory of this machine.
	Find func(ctx context.Context, s *site.Secret, node string) (Stored, error)
	Now  func() time.Time // the clock for certificates, or nil for time.Now
}

// NewKeyring returns an empty keyring for a site.
func NewKeyring(s *site.Site, dirs host.Dirs) *Keyring {
	return &Keyring{sites: []*site.Site{s}, dirs: dirs, values: map[string]string{}, stored: map[string]Stored{}}
}

// Value returns the value of a secret by the name under which hosts store it.
func (k *Keyring) Value(ctx context.Context, stored string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok := k.values[stored]; ok {
		return v, nil
	}
	name, node := secretspec.Split(stored)
	s, ok := k.declared(stored)
	if !ok {
		return "", problem.New(problem.Mistake, "secret %q is not declared", stored).At("site.toml").
			Try("add [secret.%s] with file, command or generate", name)
	}
	v, err := k.fetch(ctx, s, node)
	if err != nil {
		return "", err
	}
	k.values[stored] = v
	rememberFetched(stored, v)
	return v, nil
}

// Fetched returns the values fetched so far, by name.
func (k *Keyring) Fetched() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.values)
}

// Add adds a value that was fetched elsewhere, so that Redact hides it.
func (k *Keyring) Add(name, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[name] = value
	rememberFetched(name, value)
}

// AddSite adds the secrets of a site, such as one of the first site's releases.
func (k *Keyring) AddSite(s *site.Site) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sites = append(k.sites, s)
}

// declared returns the secret with a stored name. A release may declare a secret of which all nodes had the
// same value, and the site one of the same name of which each node has its own.
func (k *Keyring) declared(stored string) (*site.Secret, bool) {
	name, node := secretspec.Split(stored)
	for _, s := range k.sites {
		if x, ok := s.Secret(name); ok && secretspec.Name(x, node) == stored {
			return x, true
		}
	}
	return nil, false
}

func (k *Keyring) fetch(ctx context.Context, s *site.Secret, node string) (string, error) {
	switch {
	case s.File != "":
		text, err := os.ReadFile(s.File)
		if err != nil {
			return "", problem.New(problem.Failed, "secret %s cannot be read", s.Name).At(s.File).Because(err)
		}
		return strings.TrimSuffix(string(text), "\n"), nil
	case len(s.Command) > 0:
		return k.runCommand(ctx, s)
	}
	find := k.Find
	if find == nil {
		find = k.loadOrGenerate
	}
	stored, err := find(ctx, s, node)
	if err == nil {
		err = HasFormat(s, stored.Value)
	}
	if err != nil {
		return "", err
	}
	k.stored[secretspec.Name(s, node)] = stored
	return stored.Plain()
}

// Stored returns a generated secret in the form in which hosts store it, after Value has returned its
// value.
func (k *Keyring) Stored(stored string) Stored {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stored[stored]
}

// Set sets a generated secret that has a new value.
func (k *Keyring) Set(stored string, s Stored) error {
	plain, err := s.Plain()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[stored], k.stored[stored] = plain, s
	rememberFetched(stored, plain)
	return nil
}

// Generated reports whether a secret is one that Orrery generates and stores.
func (k *Keyring) Generated(stored string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.declared(stored)
	return ok && s.Generate > 0
}

// runCommand returns the output of the command that prints the secret. Its error does not contain the
// output.
func (k *Keyring) runCommand(ctx context.Context, s *site.Secret) (string, error) {
	out, err := host.Output(ctx, interactiveRunner{}, host.Command{Args: s.Command}, maxValueBytes)
	var run *host.RunError
	if errors.As(err, &run) {
		return "", problem.New(problem.Failed, "secret %s: %q failed: %s", s.Name, strings.Join(s.Command, " "),
			cmp.Or(strings.TrimSpace(run.Output), run.Err.Error()))
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// maxValueBytes is the maximum size of a value in bytes.
const maxValueBytes = 1 << 20

// An interactiveRunner runs commands on this host that may ask the user for input. Such a command has no
// controlling terminal, but its standard input may be a terminal.
type interactiveRunner struct{ host.Local }

// Run runs the command.
func (interactiveRunner) Run(ctx context.Context, c host.Command) error {
	return host.Exec(ctx, "host", c.Args, c, func(cmd *exec.Cmd) { cmd.Stdin = os.Stdin })
}

// loadOrGenerate returns a generated secret from the state directory of this machine. If it is not
// stored, generated creates it.
func (k *Keyring) loadOrGenerate(_ context.Context, s *site.Secret, node string) (Stored, error) {
	kept := Store{k.dirs.Secrets(k.sites[0].Key())}
	stored, err := kept.Read(secretspec.Name(s, node))
	if errors.Is(err, fs.ErrNotExist) {
		stored.Generation = 1
		if stored.Value, err = k.Generate(s, node); err == nil {
			err = kept.Put(secretspec.Name(s, node), stored)
		}
	}
	return stored, err
}

// Redact replaces the values of all secrets fetched so far by their names. It replaces each line of
// a multi-line value separately, because output is processed line by line and may end in the middle
// of a value.
func (k *Keyring) Redact(text string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var hidden []string
	names := map[string]string{}
	for name, value := range k.values {
		for _, line := range append(strings.Split(value, "\n"), value) {
			if line = strings.TrimSpace(line); len(line) >= minRedactedLen && names[line] == "" {
				names[line] = "<secret " + name + ">"
				hidden = append(hidden, line)
			}
		}
	}
	// the longest first, because a value may be part of another
	slices.SortFunc(hidden, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	var pairs []string
	for _, value := range hidden {
		pairs = append(pairs, value, names[value])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// maxLen returns the length of the longest value that Redact replaces.
func (k *Keyring) maxLen() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	most := minRedactedLen
	for _, value := range k.values {
		most = max(most, len(value))
	}
	return most
}

// minRedactedLen is the minimum length of a line that Redact replaces. Shorter ones would hide ordinary
// words.
const minRedactedLen = 4
