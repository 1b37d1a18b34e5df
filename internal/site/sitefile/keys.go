package sitefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/tree"
)

const (
	maxKeyFile  = 64 << 10 // bytes of a file with public keys outside the site directory
	maxNodeKeys = 1000     // public keys of a node
	maxKeyBytes = 16 << 10 // bytes of a public key
)

// keptKeys is the directory in a copy of a site directory with the public keys that the original
// reads from elsewhere. The copy is read on other hosts, which do not have these files.
const keptKeys = ".authorized_keys"

// authorizedKeys returns the public keys that the node's table or else [defaults] declares.
func (d *declaration) authorizedKeys() []string {
	at := d.At.Keys["authorized_keys"]
	if at == nil && d.loader.file.Defaults.At != nil {
		at = d.loader.file.Defaults.At.Keys["authorized_keys"]
	}
	return d.loader.publicKeys(at, d.AuthorizedKeys)
}

// publicKeys returns the public keys that a list has or names. It resolves each list once.
func (l *loader) publicKeys(at *strict.Node, entries []string) []string {
	if at == nil || l.report.bad[at] {
		return nil
	}
	if keys, done := l.keys[at]; done {
		return keys
	}
	var keys []string
	for i, entry := range entries {
		item, _ := at.Find(strconv.Itoa(i))
		if l.report.bad[item] {
			continue
		}
		found, p := l.chain.of(at).dir.publicKeys(entry)
		if p != nil {
			p.What = fmt.Sprintf("authorized_keys[%d]: %s", i, p.What)
			l.report.addAt(Name, item, p)
		}
		keys = addKeys(keys, found)
	}
	if len(keys) > maxNodeKeys {
		l.report.addAt(Name, at, mistake("authorized_keys has %d keys: at most %d are possible", len(keys), maxNodeKeys).
			Try("let people log in to fewer nodes, or use certificates"))
		keys = nil
	}
	l.keys[at] = keys
	return keys
}

// addKeys adds the keys that are missing in a list. It does not change the list, which nodes share.
func addKeys(keys, more []string) []string {
	keys = slices.Clip(keys)
	for _, key := range more {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// publicKeys returns the public keys of an entry, which is either a key or the name of a file.
func (d *directory) publicKeys(entry string) ([]string, *problem.Problem) {
	switch {
	case strings.TrimSpace(entry) == "":
		return nil, mistake("there is no key").Try(`write a public key, or a file such as "~/.ssh/id_ed25519.pub"`)
	case isKeyText(entry):
		return parseKeys("this", entry)
	}
	content, p := d.keyFile(entry)
	if p != nil {
		return nil, p
	}
	keys, p := parseKeys(problem.Truncate(entry, 200), string(content))
	if p == nil && len(keys) == 0 {
		p = mistake("%s has no key", entry).Try("write one public key a line")
	}
	return keys, p
}

// keyTypes begin the lines of authorized_keys(5), unless options do.
var keyTypes = []string{"ssh-", "ecdsa-", "sk-"}

// isKeyText reports whether an entry is meant to be a key and not the name of a file.
func isKeyText(entry string) bool {
	if isPrivateKey(entry) || strings.Contains(entry, "\n") {
		return true
	}
	for _, word := range strings.Fields(entry) {
		if slices.ContainsFunc(keyTypes, func(kind string) bool { return strings.HasPrefix(word, kind) }) {
			return true
		}
	}
	return false
}

func isPrivateKey(text string) bool {
	return strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "PuTTY-User-Key-File")
}

// parseKeys returns the public keys in a text, one for each line. Its problems quote nothing of the
// text, which may be a secret.
func parseKeys(what, text string) ([]string, *problem.Problem) {
	if isPrivateKey(text) {
		return nil, mistake("%s is a private key, which must never leave its owner's machine", what).
			Try("name its public half: the file that ends in .pub, or what ssh-keygen -y -f FILE prints; " +
				"make a new key if others could read this one")
	}
	if strings.Contains(text, "BEGIN SSH2 PUBLIC KEY") {
		return nil, mistake("%s is a public key in the format of SSH2", what).
			Try("ssh-keygen -i -f FILE prints it in OpenSSH's format")
	}
	var keys []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if !validKey(line) {
			if strings.Count(strings.TrimSpace(text), "\n") > 0 {
				what = fmt.Sprintf("%s, line %d", what, number)
			}
			return nil, mistake("%s is not a public key", what).
				Try(`write it as in a .pub file: "ssh-ed25519 AAAA… you@example.org"`)
		}
		keys = addKeys(keys, []string{line})
	}
	return keys, nil
}

// validKey reports whether a line is one public key in the format of authorized_keys(5).
func validKey(line string) bool {
	control := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
	if len(line) > maxKeyBytes || strings.ContainsFunc(line, control) {
		return false
	}
	_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	return err == nil && len(rest) == 0
}

// keyFile reads a file of public keys. Unlike everything else, it may be outside of the site
// directory, because that is where people have theirs. As the site directory may come from a
// stranger, only files whose names end in .pub are read there.
func (d *directory) keyFile(name string) ([]byte, *problem.Problem) {
	at, p := d.expandHome(name)
	if p != nil {
		return nil, p
	}
	if inside, ok := d.relPath(at); ok {
		return d.readNamed(inside)
	}
	kept := keptKeys + "/" + hexDigest(name)
	if d.copied {
		content, err := d.read(kept, maxKeyFile)
		if !errors.Is(err, fs.ErrNotExist) {
			return content, readProblem(kept, err)
		}
	}
	if !filepath.IsAbs(at) || path.Ext(at) != ".pub" {
		return nil, mistake("%q is outside the site directory, and its name does not end in .pub", name).
			Try("name the public key: %q, or copy it into the site directory", strings.TrimSuffix(name, "/")+".pub")
	}
	content, err := readPublic(at)
	if err != nil {
		return nil, mistake("public key %s cannot be read", at).Because(err).
			Try("correct the path, or copy the public key into the site directory, where everyone who runs Orrery has it")
	}
	d.files[d.kept+kept] = content
	return content, nil
}

// readPublic reads a file of public keys anywhere on this machine. Its directory is trusted, but not
// the file, which another user may have replaced.
func readPublic(at string) ([]byte, error) {
	dir, err := tree.OpenBeneath(filepath.Dir(at) + "/.")
	if err != nil {
		return nil, problem.PathErrorCause(err)
	}
	defer dir.Close()
	content, err := dir.ReadFile(filepath.Base(at), maxKeyFile)
	switch {
	case errors.Is(err, tree.ErrOutside):
		return nil, errors.New("it is a link to another directory")
	case err != nil:
		return nil, problem.PathErrorCause(err)
	}
	return content, nil
}

// PublicKeys returns the public keys in a file of this machine, or nil if it has none or anything else.
func PublicKeys(path string) []string {
	content, err := readPublic(path)
	if err != nil {
		return nil
	}
	keys, p := parseKeys(path, string(content))
	if p != nil {
		return nil
	}
	return keys
}

// expandHome replaces "~" by the home directory of the site directory's owner, and "~NAME" by that of
// a user. It is the owner's and not the caller's, so that everyone who runs Orrery, and a host that
// boots, finds the same keys.
func (d *directory) expandHome(name string) (string, *problem.Problem) {
	said, rest, _ := strings.Cut(name, "/")
	if !strings.HasPrefix(said, "~") {
		return d.absPath(name), nil
	}
	if d.copied {
		return "/" + name, nil // its content is in the copy
	}
	var who *user.User
	info, err := d.tree.Stat(".")
	switch {
	case err != nil:
	case said == "~":
		who, err = user.LookupId(strconv.FormatUint(uint64(info.Uid), 10))
	default:
		who, err = user.Lookup(said[1:])
	}
	if err != nil || !filepath.IsAbs(who.HomeDir) {
		return "", mistake("the home directory that %q begins with is unknown", name).
			Try("write the whole path, or copy the public key into the site directory")
	}
	return filepath.Join(who.HomeDir, rest), nil
}

func hexDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
