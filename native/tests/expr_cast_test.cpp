#include "expr_support.hpp"

namespace penstock::test {
namespace {

class Casts : public ExpressionTest {};

// sparql11/cast, and F&O §17.1.
TEST_F(Casts, ToString) {
    expect_all({
        {"(cast:string <http://example.org/z>)", "\"http://example.org/z\""},
        {"(cast:string \"+33.3300\")", "\"+33.3300\""},
        {"(cast:string \"0\"^^boolean)", "\"false\""},
        {"(cast:string 0.0)", "\"0\""},
        {"(cast:string -1.0)", "\"-1\""},
        {"(cast:string 2.50)", "\"2.5\""},
        {"(cast:string 0E1)", "\"0\""},
        {"(cast:string 1E0)", "\"1\""},
        {"(cast:string \"1.25\"^^float)", "\"1.25\""},
        {"(cast:string 1e6)", "\"1.0E6\""},
        {"(cast:string 999999e0)", "\"999999\""},
        {"(cast:string 0.000001e0)", "\"0.000001\""},
        {"(cast:string 1.5e-7)", "\"1.5E-7\""},
        {"(cast:string \"NaN\"^^double)", "\"NaN\""},
        {"(cast:string \"007\"^^integer)", "\"7\""},
        {"(cast:string \"2010-06-21T11:28:01.500+00:00\"^^dateTime)", "\"2010-06-21T11:28:01.5Z\""},
        {"(cast:string _:b)", "err"},
    });
}

TEST_F(Casts, ToNumbersAndBooleans) {
    expect_all({
        {"(cast:boolean \"0\")", "false"},
        {"(cast:boolean \"true\")", "true"},
        {"(cast:boolean \"TRUE\")", "err"},
        {"(cast:boolean \"1.5\")", "err"},
        {"(cast:boolean 0.0)", "false"},
        {"(cast:boolean \"NaN\"^^double)", "false"},
        {"(cast:boolean -1)", "true"},
        {"(cast:boolean <a:b>)", "err"},
        {"(cast:integer \"13\")", "13"},
        {"(cast:integer \" 13 \")", "13"},
        {"(cast:integer \"1.5\")", "err"},
        {"(cast:integer \"1E0\")", "err"},
        {"(cast:integer -2.5)", "-2"},
        {"(cast:integer \"-7.875\"^^float)", "-7"},
        {"(cast:integer 1e30)", "1000000000000000019884624838656"},
        {"(cast:integer 1e39)", "err"},
        {"(cast:integer \"INF\"^^double)", "err"},
        {"(cast:integer true)", "1"},
        {"(cast:integer \"1\"@en)", "err"},
        {"(cast:byte 127)", "\"127\"^^byte"},
        {"(cast:byte 128)", "err"},
        {"(cast:unsignedLong \"18446744073709551615\")", "\"18446744073709551615\"^^unsignedLong"},
        {"(cast:unsignedLong -1)", "err"},
        {"(datatype (cast:int 5))", "<http://www.w3.org/2001/XMLSchema#int>"},
        {"(cast:decimal \"+33.3300\")", "33.33"},
        {"(cast:decimal \"0\")", "0.0"},
        {"(cast:decimal \"0E1\")", "err"},
        {"(cast:decimal \"-7.875\"^^float)", "-7.875"},
        {"(cast:decimal 0.1e0)", "0.10000000000000000555111512312578270211"},
        {"(cast:decimal 1e39)", "err"},
        {"(cast:decimal true)", "1.0"},
        {"(cast:double \"-10.2E3\")", "-1.02E4"},
        {"(cast:double \"+33.3300\")", "3.333E1"},
        {"(cast:double \"0.0\")", "0.0E0"},
        {"(cast:double \"INF\")", "\"INF\"^^double"},
        {"(cast:double \"true\")", "err"},
        {"(cast:double true)", "1.0E0"},
        {"(cast:double \"1.25\"^^float)", "1.25E0"},
        {"(cast:float 0.1e0)", "\"1.0E-1\"^^float"},
        {"(cast:float 1e300)", "\"INF\"^^float"},
        {"(cast:float \"string\")", "err"},
    });
}

TEST_F(Casts, ToDates) {
    expect_all({
        {"(cast:dateTime \"2002-10-10T17:00:00Z\")", "\"2002-10-10T17:00:00Z\"^^dateTime"},
        {"(cast:dateTime \"2002-10-10T24:00:00Z\")", "\"2002-10-11T00:00:00Z\"^^dateTime"},
        {"(cast:dateTime \"2002-10-10\"^^date)", "\"2002-10-10T00:00:00\"^^dateTime"},
        {"(cast:dateTime \"2002-10-10\")", "err"},
        {"(cast:date \"2002-10-10T17:00:00-05:00\"^^dateTime)", "\"2002-10-10-05:00\"^^date"},
        {"(cast:date \"1969-12-31T17:00:00\"^^dateTime)", "\"1969-12-31\"^^date"},
        {"(cast:time \"2002-10-10T17:00:00Z\"^^dateTime)", "\"17:00:00Z\"^^time"},
        {"(cast:date \"13\")", "err"},
        {"(cast:dayTimeDuration \"P1Y2DT3H\"^^duration)", "\"P2DT3H\"^^dayTimeDuration"},
    });
}

}  // namespace
}  // namespace penstock::test
