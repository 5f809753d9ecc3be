"""Release, sandbox and grade the coursework: a small layer on nbgrader.

=============  ====================================================================
`sandbox`      the walls around a student's kernel, and the test that they stand
`kernel`       the kernel manager and the preprocessor that run a notebook inside them
`in_kernel`    the one file of ours that the student's kernel can see
`wire`         values on their way out of that kernel: data, never objects
`tasks`        what a task asks, on which inputs, for how many points
`grading`      the preprocessors that put the layout back, insert probes and judge them
`feedback`     the page a student gets back
`settings`     all of the above as an nbgrader configuration
`submissions`  which notebook is whose
`worker`       grades one submission, in a process of its own
`run`          grades a class: resumes, records, reports
`publish`      student notebooks, notebooks with folded solutions, the table for teachers
=============  ====================================================================
"""
