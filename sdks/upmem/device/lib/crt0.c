/* Where each tasklet begins, on its own stack. It ends by returning. */
int main(void);

__attribute__((used)) void __bootstrap(void) { main(); }
