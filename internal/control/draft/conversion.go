package draft

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// maxSource is how many bytes a file to convert may have, and maxConverted how many nodes it may mean.
const (
	maxSource    = 1 << 20
	maxConverted = 5000
)

// firstID is the id of the first node of a converted site. Those below are left for what users add.
const firstID = 11

// A conversion is what imports of files with lines have in common.
type conversion struct {
	sitefile.Imported
	dir   string
	file  string // its name, as messages have it
	roles []host.File
}

// readSource reads a file to convert.
func readSource(file string) ([]byte, error) {
	text, err := tree.ReadFile(file, maxSource)
	if err != nil {
		return nil, problem.New(problem.Usage, "cannot be read").At(file).Because(problem.PathErrorCause(err))
	}
	return text, nil
}

// newConversion returns the conversion of a file to a site directory.
func newConversion(dir, name, file string) (conversion, error) {
	name, err := chooseName(dir, name)
	c := conversion{dir: dir, file: sanitize.Line(filepath.Base(file))}
	c.Site = name
	return c, err
}

// lose records that the site has no place for what a line says.
func (c *conversion) lose(line int, what, format string, args ...any) {
	c.Lost = append(c.Lost, fmt.Sprintf("%s:%d: %s: %s", c.file, line, sanitize.Line(problem.Truncate(what, 120)),
		sanitize.Line(fmt.Sprintf(format, args...))))
}

// todo records what is left to do because of a line.
func (c *conversion) todo(line int, format string, args ...any) {
	c.ToDo = append(c.ToDo, fmt.Sprintf("%s:%d: %s", c.file, line, sanitize.Line(fmt.Sprintf(format, args...))))
}

// role adds the file of a role.
func (c *conversion) role(name, text string) {
	c.Roles = append(c.Roles, name)
	c.roles = append(c.roles, host.File{Path: filepath.Join(c.dir, "roles", name, "role.toml"), Content: []byte(text),
		Mode: 0o644})
}

// write writes the site directory and returns the paths of its files.
func (c *conversion) write(siteText string) ([]string, error) {
	c.Content = []byte(siteText)
	for _, f := range c.roles {
		if exists(f.Path) {
			return nil, problem.New(problem.Usage, "a file exists already").At(f.Path).Try("use another directory")
		}
	}
	return write(append([]host.File{{Path: filepath.Join(c.dir, sitefile.Name), Content: c.Content, Mode: 0o644}},
		c.roles...))
}

// subnetFor returns a free subnet in which every id from firstID on has an address of its own.
func subnetFor(name string, nodes int, taken []netip.Prefix) netip.Prefix {
	small := freeSubnet(name, taken)
	if firstID+nodes <= site.SubnetCapacity(small) {
		return small
	}
	for second := firstSubnet; second <= lastSubnet; second++ {
		if p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second), 0, 0}), 16); isFree(p, taken) {
			return p
		}
	}
	return netip.PrefixFrom(small.Addr(), 16).Masked() // as freeSubnet: up says that it is taken
}
