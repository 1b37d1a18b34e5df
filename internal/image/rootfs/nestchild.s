// This file lets nestchild.go declare functions of package runtime without a body.
