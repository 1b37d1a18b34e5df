package image

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// maxAccountBytes is the maximum size of an account file. Other users may have written the tree, so
// its files may have any size.
const maxAccountBytes = 4 << 20

// LookupAccount returns the numeric ids of "user:group" (or "user"). It looks them up in the topmost tree
// that has the account file.
func LookupAccount(trees []string, owner string) (uid, gid int, err error) {
	var roots []*tree.Root
	for _, dir := range trees {
		root, err := tree.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		defer root.Close()
		roots = append(roots, root)
	}
	return LookupAccountIn(roots, owner)
}

// LookupAccountIn is like LookupAccount for trees that are open.
func LookupAccountIn(trees []*tree.Root, owner string) (uid, gid int, err error) {
	user, group, both := strings.Cut(owner, ":")
	if owner == "" {
		return 0, 0, nil
	}
	uid, primary, err := lookupName(trees, "etc/passwd", user)
	if err != nil || !both {
		return uid, primary, err
	}
	gid, _, err = lookupName(trees, "etc/group", group)
	return uid, gid, err
}

// lookupName finds a name in a file in the format of passwd(5) or group(5). It returns the number of
// the name and the number in the next field.
func lookupName(trees []*tree.Root, file, name string) (number, next int, err error) {
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), int(n), nil
	}
	for _, t := range trees {
		text, err := t.ReadFile(file, maxAccountBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, 0, problem.New(problem.Failed, "the owner %q cannot be looked up in /%s", name, file).At(t.Name()).
				Because(err).
				Try("make /%s a regular file again, or give the owner as numbers", file)
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) > 2 && fields[0] == name {
				return parseIDs(file, fields)
			}
		}
		break
	}
	return 0, 0, fmt.Errorf("/%s has no %q", file, name)
}

// parseIDs parses the number of an account and, for a user, the number of its group. It rejects
// parseIDs above 65535. They could be reserved by the host's kernel, or be those of another node
// when added to the node's first id.
func parseIDs(file string, fields []string) (number, next int, err error) {
	wanted := fields[2:3]
	if len(fields) > 4 { // the file is passwd(5)
		wanted = fields[2:4]
	}
	var found [2]int
	for i, word := range wanted {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > math.MaxUint16 {
			return 0, 0, fmt.Errorf("/%s: the account %q has the number %q, which is not valid in a node", file, fields[0], word)
		}
		found[i] = n
	}
	return found[0], found[1], nil
}
