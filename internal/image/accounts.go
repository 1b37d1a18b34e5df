package image

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Account gives the numeric ids of "user:group" (or "user") as the topmost of the trees that has the file knows them.
func Account(trees []string, owner string) (uid, gid int, err error) {
	user, group, both := strings.Cut(owner, ":")
	if owner == "" {
		return 0, 0, nil
	}
	uid, primary, err := lookUp(trees, "etc/passwd", user)
	if err != nil || !both {
		return uid, primary, err
	}
	gid, _, err = lookUp(trees, "etc/group", group)
	return uid, gid, err
}

// lookUp finds a name in a file of the form of passwd(5) or group(5), and gives its number and the one after.
func lookUp(trees []string, file, name string) (number, next int, err error) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, n, nil
	}
	for _, tree := range trees {
		f, err := os.Open(filepath.Join(tree, file))
		if err != nil {
			continue
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Split(lines.Text(), ":")
			if fields[0] != name || len(fields) < 3 {
				continue
			}
			number, err = strconv.Atoi(fields[2])
			if err == nil && len(fields) > 3 {
				next, _ = strconv.Atoi(fields[3])
			}
			return number, next, err
		}
		break
	}
	return 0, 0, fmt.Errorf("/%s has no %q", file, name)
}
